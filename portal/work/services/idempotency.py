"""Idempotency-Key: the first answer to a POST is kept for 24 hours and given to every repeat of it.

The key is claimed before the work and the answer stored after it, in transactions of their own: a crash between leaves
a claim without an answer, and such a key is refused rather than risked a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from portal.kernel.clock import now
from portal.kernel.errors import Conflict, InvalidInput
from portal.work.models import IdempotencyRecord

KEPT = timedelta(hours=24)
IN_PROGRESS = timedelta(minutes=2)
KEY_MAX = 255


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer as it is kept: ``body`` is a JSON value without secrets."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def idempotency_claim(*, actor_id: str, key: str, fingerprint: str) -> Answer | None:
    """Claim ``key`` for one actor: None means do the work, an Answer means it was done and this was said.

    ``fingerprint`` is a hash of method, path and body. InvalidInput when the key is empty, too long or not printable
    ASCII; Conflict when it was used for something else, is being worked on now, or was cut off without an answer.
    """
    if not key or len(key) > KEY_MAX or not key.isascii() or not key.isprintable():
        raise InvalidInput(
            f"Idempotency-Key must be 1 to {KEY_MAX} printable ASCII characters.",
            fields={"Idempotency-Key": ["A random UUID does."]},
        )
    at = now()
    mine = IdempotencyRecord.objects.filter(actor_id=actor_id)
    with transaction.atomic(durable=True):
        mine.filter(created_at__lte=at - KEPT).delete()
        try:
            with transaction.atomic():
                IdempotencyRecord.objects.create(actor_id=actor_id, key=key, fingerprint=fingerprint, created_at=at)
        except IntegrityError:
            earlier = mine.filter(key=key).first()
        else:
            return None
    if earlier is None:  # refused and given back between the two looks
        raise Conflict("The first request with this Idempotency-Key has just been refused: ask again.", code="in_progress")
    if earlier.fingerprint != fingerprint:
        raise Conflict(
            "This Idempotency-Key was used for another request: take a new key for a new request.",
            code="idempotency_key_reused",
        )
    if earlier.status is None:
        if at - earlier.created_at < IN_PROGRESS:
            raise Conflict("The first request with this Idempotency-Key is still running: ask again.", code="in_progress")
        raise Conflict(
            "The first request with this Idempotency-Key was cut off, and whether it took effect is not known: "
            "look for what it should have made before you send it again with a new key.",
            code="outcome_unknown",
        )
    kept = earlier.body or {}
    return Answer(status=earlier.status, body=kept.get("body"), headers=kept.get("headers", {}))


def idempotency_store(*, actor_id: str, key: str, answer: Answer) -> None:
    """Keep ``answer`` for the repeats of ``key``."""
    with transaction.atomic(durable=True):
        IdempotencyRecord.objects.filter(actor_id=actor_id, key=key).update(
            status=answer.status, body={"body": answer.body, "headers": answer.headers}
        )


def idempotency_release(*, actor_id: str, key: str) -> None:
    """Give ``key`` back: the request was refused and changed nothing."""
    with transaction.atomic(durable=True):
        IdempotencyRecord.objects.filter(actor_id=actor_id, key=key, status=None).delete()
