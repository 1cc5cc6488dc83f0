"""Every address of the web process: pages by app, then REST and the probes."""

from django.urls import include, path

urlpatterns = [
    path("accounts/", include("allauth.account.urls")),
    path("", include("portal.api_urls")),
]
