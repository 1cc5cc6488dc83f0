"""Every address of the web process: pages by app, then REST and the probes."""

from allauth.account import views as account
from django.urls import include, path

urlpatterns = [
    path("accounts/login/", account.login, name="account_login"),
    path("accounts/logout/", account.logout, name="account_logout"),
    path("accounts/inactive/", account.account_inactive, name="account_inactive"),
    path("accounts/password/change/", account.password_change, name="account_change_password"),
    path("", include("portal.site.web.urls")),
    path("", include("portal.site.web.project_urls")),
    path("", include("portal.approvals.web.urls")),
    path("", include("models_app.web.urls")),
    path("", include("fleet.web.urls")),
    path("", include("routing.web.urls")),
    path("", include("portal.tenancy.web.urls")),
    path("", include("portal.api_urls")),
]

handler400 = "portal.site.web.errors.bad_request"
handler403 = "portal.site.web.errors.forbidden"
handler404 = "portal.site.web.errors.not_found"
handler429 = "portal.site.web.errors.too_many"
handler500 = "portal.site.web.errors.server_error"
