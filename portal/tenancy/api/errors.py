"""The one error shape of the REST API: ``{"code": …, "detail": …, "fields": {name: [messages]}}``.

``code`` is stable and for machines, ``detail`` is for people, ``fields`` names each wrong input by its path
(``payload.replicas``), "" for what concerns the whole body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.kernel.errors import NotFound, SlipwayError

log = structlog.get_logger(__name__)

NOT_FOUND = {"code": NotFound.code, "detail": "Not found.", "fields": {}}
"""The one body of every 404: another tenant's object, an id that never existed, an address that leads nowhere (A1)."""

_OUTAGE = (
    "The database did not answer in time. Ask again shortly; after a write, look first whether it took effect, "
    "or send it with an Idempotency-Key."
)

_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.ParseError: "malformed",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "bad_token",
    exceptions.PermissionDenied: "forbidden",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
}


class PreconditionRequired(SlipwayError):
    """A write that could overwrite somebody's change came without If-Match."""

    status = 428
    code = "precondition_required"


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's hook: every exception that leaves a view becomes the one shape; the unexpected ones are logged in full."""
    set_rollback()
    if isinstance(exc, Http404 | NotFound | exceptions.NotFound):
        return Response(NOT_FOUND, status=status.HTTP_404_NOT_FOUND)
    if isinstance(exc, SlipwayError):
        headers = {"Retry-After": "5"} if exc.status == status.HTTP_503_SERVICE_UNAVAILABLE else None
        return _answer(exc.status, exc.code, exc.detail, exc.fields, headers)
    if isinstance(exc, PermissionDenied):
        return _answer(status.HTTP_403_FORBIDDEN, "forbidden", str(exc) or "This is not allowed.", {})
    if isinstance(exc, RequestDataTooBig):
        return _answer(413, "too_large", "The request body is larger than this API takes.", {})
    if isinstance(exc, SuspiciousOperation):
        return _answer(400, "malformed", "The request is malformed.", {})
    if isinstance(exc, exceptions.ValidationError):
        return _answer(exc.status_code, "invalid", "Some of the input is wrong; nothing was changed.", flattened(exc.detail))
    if isinstance(exc, exceptions.APIException):
        return _answer(exc.status_code, _code_of(exc), _text_of(exc.detail), {}, _headers_of(exc))
    request = context.get("request")
    if isinstance(exc.__cause__, psycopg.OperationalError):
        log.warning("api_without_database", path=getattr(request, "path", ""), exc_info=exc)
        return _answer(503, "unavailable", _OUTAGE, {}, {"Retry-After": "5"})
    request_id = getattr(request, "request_id", "")
    log.error("api_failed", path=getattr(request, "path", ""), exc_info=exc)
    return _answer(500, "error", f"Something broke here, and it was logged. Quote request id {request_id or 'unknown'}.", {})


def flattened(detail: Any, path: str = "") -> dict[str, list[str]]:
    """DRF's nested validation messages as path -> messages; "" is the whole body."""
    if isinstance(detail, Mapping):
        found: dict[str, list[str]] = {}
        for name, value in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            for key, messages in flattened(value, ".".join(part for part in (path, own) if part)).items():
                found.setdefault(key, []).extend(messages)
        return found
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        found = {}
        for index, value in enumerate(detail):
            nested = isinstance(value, Mapping | Sequence) and not isinstance(value, str)
            for key, messages in flattened(value, f"{path}.{index}" if nested and path else path).items():
                found.setdefault(key, []).extend(messages)
        return found
    return {path: [str(detail)]}


def _answer(
    code_number: int, code: str, detail: str, fields: Mapping[str, Sequence[str]], headers: dict[str, str] | None = None
) -> Response:
    body = {"code": code, "detail": detail, "fields": {name: list(messages) for name, messages in fields.items()}}
    return Response(body, status=code_number, headers=headers)


def _code_of(exc: exceptions.APIException) -> str:
    given = exc.get_codes()
    if isinstance(exc, exceptions.PermissionDenied) and "CSRF" in str(exc.detail):
        return "csrf_failed"
    if isinstance(given, str) and given != exc.default_code:
        return given
    return next((code for kind, code in _CODES.items() if isinstance(exc, kind)), "error")


def _text_of(detail: Any) -> str:
    return " ".join(message for messages in flattened(detail).values() for message in messages)


def _headers_of(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    challenge = getattr(exc, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    wait = getattr(exc, "wait", None)
    if wait:
        headers["Retry-After"] = str(int(wait) + 1)
    return headers
