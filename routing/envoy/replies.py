"""What Envoy itself answers, as OpenAI error bodies (contract G3): each of its own failures in the caller's terms."""

from __future__ import annotations

from typing import Any

_CEL = "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"


def local_replies(body_bytes: int, idle_seconds: int) -> dict[str, Any]:
    """The mappers, first match wins. Bodies that the authz service wrote pass as they are."""
    return {
        "mappers": [
            _as_it_is("response.code_details == 'ext_authz_denied'"),
            _mapper(
                "response.code_details == 'ext_authz_error'",
                "The gateway cannot check API keys at the moment. Try again shortly.",
                "server_error",
                "gateway_unavailable",
                retry_after=2,
            ),
            _mapper(
                "response.code_details.startsWith('rbac_access_denied')",
                "The model's name must be 1 to 200 printable ASCII characters without spaces.",
                "invalid_request_error",
                "invalid_model",
                status=400,
            ),
            _mapper(
                "response.code == 413",
                f"The request is larger than this gateway takes ({body_bytes} bytes).",
                "invalid_request_error",
                "request_too_large",
            ),
            _mapper(
                "response.code == 504",
                f"The model sent nothing for {idle_seconds} s. Ask for a stream, or for less at once.",
                "server_error",
                "timeout",
            ),
            _mapper(
                "response.code_details == 'no_healthy_upstream' || response.code_details == 'cluster_not_found'",
                "The model has no ready replica at the moment. Try again shortly.",
                "server_error",
                "model_not_ready",
                status=503,
                retry_after=5,
            ),
            _mapper(
                "response.code == 503 || response.code == 502",
                "No replica of the model could be reached. Try again shortly.",
                "server_error",
                "model_unavailable",
                status=503,
                retry_after=5,
            ),
            _mapper(
                "response.code >= 500",
                "The gateway failed to answer. Try again shortly.",
                "server_error",
                "gateway_error",
            ),
            _mapper(
                "true",
                "The request could not be read: %RESPONSE_CODE_DETAILS%.",
                "invalid_request_error",
                "bad_request",
            ),
        ]
    }


def _as_it_is(expression: str) -> dict[str, Any]:
    return {
        "filter": _when(expression),
        "body_format_override": {
            "text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"},
            "content_type": "application/json",
        },
    }


def _mapper(
    expression: str, message: str, kind: str, code: str, *, status: int | None = None, retry_after: int | None = None
) -> dict[str, Any]:
    mapper: dict[str, Any] = {
        "filter": _when(expression),
        "body_format_override": {
            "json_format": {"error": {"message": message, "type": kind, "param": None, "code": code}},
        },
    }
    if status is not None:
        mapper["status_code"] = status
    if retry_after is not None:
        mapper["headers_to_add"] = [{"header": {"key": "retry-after", "value": str(retry_after)}}]
    return mapper


def _when(expression: str) -> dict[str, Any]:
    return {
        "extension_filter": {
            "name": "envoy.access_loggers.extension_filters.cel",
            "typed_config": {"@type": _CEL, "expression": expression},
        }
    }
