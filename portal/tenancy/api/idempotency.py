"""The Idempotency-Key header on POST (``portal.work.services.idempotency`` keeps the answers)."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.kernel.errors import SlipwayError
from portal.tenancy.api.authentication import actor_of
from portal.work.services.idempotency import Answer, idempotency_claim, idempotency_release, idempotency_store

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEPT_HEADERS = ("ETag", "Location")

Handler = Callable[..., Response]


def idempotent(*, shown_once: tuple[str, ...] = ()) -> Callable[[Handler], Handler]:
    """A POST handler whose repeats with the same key get the first answer again.

    ``shown_once`` names fields of the answer that are never kept, secrets: they are null in a repeat. A refusal (4xx, 503)
    changed nothing and gives the key back; what broke unexpectedly leaves it claimed, since its effect is not known.
    """

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return handler(view, request, *args, **kwargs)
            actor_id = actor_of(request).id
            kept = idempotency_claim(actor_id=actor_id, key=key, fingerprint=_fingerprint(request))
            if kept is not None:
                return Response(kept.body, status=kept.status, headers={**kept.headers, REPLAYED: "true"})
            try:
                response = handler(view, request, *args, **kwargs)
            except (SlipwayError, exceptions.APIException):
                idempotency_release(actor_id=actor_id, key=key)
                raise
            idempotency_store(actor_id=actor_id, key=key, answer=_kept(response, shown_once))
            return response

        return answer

    return decorate


def _fingerprint(request: Request) -> str:
    return hashlib.sha256(b"\0".join([request.method.encode(), request.get_full_path().encode(), request.body])).hexdigest()


def _kept(response: Response, shown_once: tuple[str, ...]) -> Answer:
    body = json.loads(JSONRenderer().render(response.data)) if response.data is not None else None
    if isinstance(body, dict):
        body = {name: None if name in shown_once else value for name, value in body.items()}
    headers = {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)}
    return Answer(status=response.status_code, body=body, headers=headers)
