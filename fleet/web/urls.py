from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from fleet.web import ask, views

urlpatterns = [
    path("fleet/", views.fleet, name="fleet"),
    path("fleet/live/", views.fleet_live, name="fleet-live"),
    path("projects/<public_id:public_id>/ask-gpus/", ask.ask_grant, name="ask-grant"),
    path("projects/<public_id:public_id>/ask-gpus/preview/", ask.ask_grant_preview, name="ask-grant-preview"),
]
