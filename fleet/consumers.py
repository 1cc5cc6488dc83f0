"""What holds devices of a grant and must stop when the grant ends; registered by the floor that owns the consumer."""

from __future__ import annotations

from typing import Protocol

from portal.audit.domain.actors import Actor


class StopConsumer(Protocol):
    def __call__(self, *, actor: Actor, public_id: str, reason: str) -> None:
        """Stop wanting what holds the devices: a part, in the transaction that ends the grant; safe to repeat.

        The hold itself stays until the last pod is proven gone (Q1).
        """


_stops: dict[str, StopConsumer] = {}


def register(kind: str, stop: StopConsumer) -> None:
    """``kind`` is the ``consumer_kind`` of its holds."""
    _stops[kind] = stop


def stop_of(kind: str) -> StopConsumer | None:
    """None for a kind that nobody registered: its hold is left to its owner."""
    return _stops.get(kind)
