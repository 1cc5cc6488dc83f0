"""Error answers of an API server -> the adapter's errors. Pure: a status, headers and a body in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from fleet.cluster.port import (
    Absent,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    StaleObject,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)

_TEXT_MAX = 500
_FIELD_CONFLICT = "FieldManagerConflict"


def status_of(body: bytes) -> dict[str, Any]:
    """The ``Status`` object in an answer; for anything else one with the text as its message."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        return parsed
    return {"message": body[:_TEXT_MAX].decode(errors="replace").strip()}


def error_of(code: int, body: bytes, headers: Mapping[str, str] | None = None) -> ClusterError:
    """The error for an answer of 400 and above; every code that is not known says nothing about the cluster: Unreachable."""
    return error_from_status({**status_of(body), "code": code}, (headers or {}).get("Retry-After", ""))


def error_from_status(status: Mapping[str, Any], retry_after: str = "") -> ClusterError:
    """The same for a ``Status`` object, as an ERROR line of a watch carries it."""
    code = status.get("code")
    message = str(status.get("message") or f"the API server answered {code}")[:_TEXT_MAX]
    details = status.get("details") or {}
    causes = [cause for cause in details.get("causes") or [] if isinstance(cause, dict)]
    if code == 401:
        return Unauthorized(message)
    if code == 403:
        return Forbidden(message)
    if code == 404:
        return Absent(message)
    if code == 409:
        owned = [
            (str(cause.get("field", "")), _manager(cause)) for cause in causes if cause.get("reason") == _FIELD_CONFLICT
        ]
        return Conflict(message, owned) if owned else StaleObject(message)
    if code == 410 or status.get("reason") == "Expired":
        return Gone(message)
    if code == 429:
        asked = retry_after or str(details.get("retryAfterSeconds", ""))
        return TooManyRequests(message, max(1, int(asked)) if asked.isascii() and asked.isdigit() else 1)
    if code in {400, 405, 406, 413, 415, 422}:
        fields = [(str(cause.get("field", "")), str(cause.get("message", ""))) for cause in causes]
        # A fresh resourceVersion with another object's uid: the server calls the uid immutable instead of a conflict.
        return StaleObject(message) if [path for path, _ in fields] == ["metadata.uid"] else Invalid(message, fields)
    return Unreachable(f"{code}: {message}")


def _manager(cause: Mapping[str, Any]) -> str:
    """The other manager's name out of ``conflict with "kubectl" using apps/v1`` (its only place in the answer)."""
    message = str(cause.get("message", ""))
    quoted = message.split('"')
    return quoted[1] if len(quoted) > 2 else message
