from django.urls import path

from fleet.web import views

urlpatterns = [
    path("fleet/", views.fleet, name="fleet"),
    path("fleet/live/", views.fleet_live, name="fleet-live"),
]
