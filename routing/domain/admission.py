"""May this call pass, and where to: one pure function for calls and lists (contract G4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from routing.domain import refusals
from routing.domain.keys import bearer, digest, has_the_shape
from routing.domain.refusals import Refusal
from routing.domain.table import Key, Route, RouteTable

INFERENCE_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/rerank",
)
"""What is passed on to engines; everything else an engine serves (slots, metrics, adapters) stays inside."""

UNREADABLE = "unreadable"
"""What the data plane says of a body it could not read as JSON."""


@dataclass(frozen=True, slots=True)
class Admitted:
    key: Key
    route: Route


def key_of(table: RouteTable, authorization: str, at: datetime) -> Key | Refusal:
    """Whose call this is: a key in force at ``at``, or why not."""
    secret = bearer(authorization)
    if not secret:
        return refusals.NO_KEY
    if not has_the_shape(secret):
        return refusals.NO_KEY_OF_OURS
    return table.key(digest(secret), at) or refusals.BAD_KEY


def admit(
    table: RouteTable, *, authorization: str, method: str, path: str, model: str, problem: str, at: datetime
) -> Admitted | Refusal:
    """Admit a call to ``model`` (as the body names it; ``problem`` what the data plane found wrong with the body).

    The key is judged first: without one, nothing is said about models. A model without a ready pod is admitted too: the
    data plane knows best what is there, and answers 503 with Retry-After (``envoy.replies``).
    """
    key = key_of(table, authorization, at)
    if isinstance(key, Refusal):
        return key
    if method != "POST" or path not in INFERENCE_PATHS:
        return refusals.NO_SUCH_URL
    if not model:
        return refusals.NOT_AN_OBJECT if problem == UNREADABLE else refusals.NO_MODEL
    route = table.route(key.project_id, model)
    if route is None:
        return refusals.model_not_found(model)
    return Admitted(key=key, route=route)


def described(route: Route) -> dict[str, object]:
    """A model as ``/v1/models`` shows it; ``created`` in Unix seconds."""
    return {"id": route.model, "object": "model", "created": route.created, "owned_by": route.project_id}


def model_list(table: RouteTable, *, authorization: str, wanted: str, at: datetime) -> dict[str, object] | Refusal:
    """The models a call with this key may name, or the one ``wanted`` among them, as OpenAI shows them."""
    key = key_of(table, authorization, at)
    if isinstance(key, Refusal):
        return key
    if not wanted:
        return {"object": "list", "data": [described(route) for route in table.models(key.project_id)]}
    route = table.route(key.project_id, wanted)
    return described(route) if route is not None else refusals.model_not_found(wanted)
