"""One log line for each request that is not a probe, with the id that follows it down to the cluster object."""

from __future__ import annotations

import time

import structlog
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

log = structlog.get_logger(__name__)

_QUIET = ("/healthz", "/readyz", "/metrics", "/static/")


class AccessLogMiddleware(MiddlewareMixin):
    """Sits right behind ``RequestIdMiddleware``. The query string stays out: it may hold what people typed."""

    def process_request(self, request: HttpRequest) -> None:
        request.started_monotonic = time.monotonic()

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if not request.path_info.startswith(_QUIET):
            took = time.monotonic() - getattr(request, "started_monotonic", time.monotonic())
            log.info(
                "request",
                method=request.method,
                path=request.path_info,
                status=response.status_code,
                milliseconds=round(took * 1000, 1),
                streaming=response.streaming,
            )
        return response
