"""Errors as OpenAI clients expect them (contract G3): ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is not the model's. ``retry_after`` in seconds, None when trying again will not help."""

    status: int
    message: str
    type: str
    code: str
    param: str | None = None
    retry_after: int | None = None

    @property
    def body(self) -> dict[str, dict[str, str | None]]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


NO_KEY = Refusal(
    401,
    "You didn't provide an API key. Send a project's key as: Authorization: Bearer slk_…",
    "invalid_request_error",
    "missing_api_key",
)
BAD_KEY = Refusal(
    401, "This API key is not valid: unknown, expired, revoked, or its project is closed.", "invalid_request_error", "invalid_api_key"
)
NO_MODEL = Refusal(
    400,
    'The request names no model: send a JSON object with "model" and Content-Type: application/json.',
    "invalid_request_error",
    "missing_model",
    "model",
)
NOT_AN_OBJECT = Refusal(400, "The request body is not readable as JSON.", "invalid_request_error", "invalid_json")
STARTING = Refusal(
    503, "The gateway has just started and has not read its routes yet. Try again shortly.", "server_error", "starting", retry_after=2
)


def model_not_found(model: str) -> Refusal:
    """The one answer for a name nobody has and a name another project has (G4, C40)."""
    return Refusal(
        404,
        f"The model `{model}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
        "model",
    )


def model_not_ready(model: str) -> Refusal:
    """Known and allowed, with no pod that takes new work at this moment."""
    return Refusal(
        503, f"The model `{model}` has no ready replica at the moment. Try again shortly.", "server_error", "model_not_ready", retry_after=5
    )


def no_such_url(method: str, path: str) -> Refusal:
    return Refusal(404, f"Unknown request URL: {method} {path}.", "invalid_request_error", "unknown_url")
