from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from portal.site.web import project, usage

urlpatterns = [
    path("projects/<public_id:public_id>/", project.project, name="project"),
    path("projects/<public_id:public_id>/members/", project.member_set, name="member-set"),
    path("projects/<public_id:public_id>/members/<public_id:user_id>/remove/", project.member_remove, name="member-remove"),
    path("projects/<public_id:public_id>/usage/", usage.usage, name="usage"),
    path("projects/<public_id:public_id>/usage/intervals/", usage.usage_intervals, name="usage-intervals"),
]
