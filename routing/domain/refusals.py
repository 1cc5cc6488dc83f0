"""Errors as OpenAI clients expect them (contract G3): ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is not the model's. ``retry_after`` in seconds, None when trying again will not help.

    ``may_be_news``: what was asked for may have been made a moment ago, after the table in hand was read.
    """

    status: int
    message: str
    type: str
    code: str
    param: str | None = None
    retry_after: int | None = None
    may_be_news: bool = False

    @property
    def body(self) -> dict[str, dict[str, str | None]]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


NO_KEY = Refusal(
    401,
    "You didn't provide an API key. Send a project's key as: Authorization: Bearer slk_…",
    "invalid_request_error",
    "missing_api_key",
)
NO_KEY_OF_OURS = Refusal(
    401,
    "This API key is not valid: unknown, expired, revoked, or its project is closed.",
    "invalid_request_error",
    "invalid_api_key",
)
BAD_KEY = replace(NO_KEY_OF_OURS, may_be_news=True)
NO_MODEL = Refusal(
    400,
    'The request names no model: send a JSON object with "model" and Content-Type: application/json.',
    "invalid_request_error",
    "missing_model",
    "model",
)
NOT_AN_OBJECT = Refusal(400, "The request body is not readable as JSON.", "invalid_request_error", "invalid_json")
NO_SUCH_URL = Refusal(404, "Unknown request URL.", "invalid_request_error", "unknown_url")
STARTING = Refusal(
    503,
    "The gateway has just started and has not read its routes yet. Try again shortly.",
    "server_error",
    "starting",
    retry_after=2,
)


def model_not_found(model: str) -> Refusal:
    """The one answer for a name nobody has and a name another project has (G4, C40)."""
    return Refusal(
        404,
        f"The model `{model}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
        "model",
        may_be_news=True,
    )
