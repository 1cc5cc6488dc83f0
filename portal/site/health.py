"""Probes: ``/healthz`` (this process answers) and ``/readyz`` (it can do its work). Both anonymous, both name no tenant."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from portal.site.selectors.operations import database_problem, valkey_problem

_UNCACHED = {"Cache-Control": "no-store"}


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers: a restart would not mend what lies outside it."""
    return JsonResponse({"status": "ok"}, headers=_UNCACHED)


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when pages can be served, else 503. Without Valkey they can: work goes on by the sweeps, and it says so."""
    database = database_problem()
    valkey = valkey_problem()
    status = "unavailable" if database else "degraded" if valkey else "ok"
    checks = {"database": database or "ok", "valkey": valkey or "ok"}
    return JsonResponse({"status": status, "checks": checks}, status=503 if database else 200, headers=_UNCACHED)
