"""Hints for drf-spectacular: how callers sign in, and what every operation may answer besides success."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag that you read, or * to insist."
)
IF_MATCH_OPTIONAL = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=False, description="The ETag that you read: 412 when it moved."
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="A repeat with the same key within 24 hours gets the first answer again.",
)

_ERRORS = {
    "401": "Not signed in, or the token is unknown, expired or revoked.",
    "404": "It does not exist for you.",
    "default": "Refused: see `code`, `detail` and `fields`.",
}


class NamedAutoSchema(AutoSchema):
    """Operations are called after their view, which has a name of its own in the whole API: ``request_decide_post``."""

    def get_operation_id(self) -> str:
        noun = re.sub(r"(?<!^)(?=[A-Z])", "_", type(self.view).__name__.removesuffix("View")).lower()
        return f"{noun}_{'list' if self._is_list_view() else self.method.lower()}"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.tenancy.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "slp_…", "description": "A personal token."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.tenancy.api.authentication.BrowserSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A signed-in browser; writes also send X-CSRFToken.",
        }


def with_errors(result: dict[str, Any], **_rest: Any) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: every operation names the one error shape."""
    shape = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            if not isinstance(operation, dict) or "responses" not in operation:
                continue
            for status, text in _ERRORS.items():
                operation["responses"].setdefault(status, {"description": text, "content": shape})
    result["components"]["schemas"].setdefault(
        "Error",
        {
            "type": "object",
            "description": "What every refusal looks like.",
            "required": ["code", "detail", "fields"],
            "properties": {
                "code": {"type": "string", "description": "Stable, for machines."},
                "detail": {"type": "string", "description": "One sentence for people, with the way out."},
                "fields": {
                    "type": "object",
                    "description": "Wrong input by its path, with what is wrong.",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    )
    return result
