"""Every address that is not a page: REST under ``/api/v1/``, the probes and ``/metrics``."""

from django.urls import include, path, re_path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from portal.site.api.audit import AuditView
from portal.site.api.views import NowhereView, SchemaView
from portal.site.health import healthz, readyz
from portal.site.metrics import metrics

version_1 = [
    path("openapi.json", SchemaView.as_view(), name="api-schema"),
    path("audit/", AuditView.as_view(), name="api-audit"),
    path("", include("portal.tenancy.api.urls")),
    path("", include("portal.approvals.api.urls")),
    path("", include("fleet.api.urls")),
    path("", include("models_app.api.urls")),
    path("", include("routing.api.urls")),
]

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include(version_1)),
    re_path(r"^api/(?P<rest>.*)$", NowhereView.as_view(), name="api-nowhere"),
]
