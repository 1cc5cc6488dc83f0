from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from routing.web import views

urlpatterns = [
    path("projects/<public_id:public_id>/keys/", views.keys, name="project-keys"),
    path("keys/<public_id:public_id>/revoke/", views.key_end, name="key-revoke"),
]
