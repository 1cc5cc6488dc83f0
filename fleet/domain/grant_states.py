"""The one table of grant states and moves (contract §2)."""

from __future__ import annotations

from enum import StrEnum


class GrantState(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    REVOKED = "revoked"
    CLOSED = "closed"


MOVES: dict[GrantState, frozenset[GrantState]] = {
    GrantState.PENDING: frozenset({GrantState.ACTIVE, GrantState.REVOKED, GrantState.CLOSED}),
    GrantState.ACTIVE: frozenset({GrantState.EXPIRING, GrantState.EXPIRED, GrantState.REVOKED, GrantState.CLOSED}),
    GrantState.EXPIRING: frozenset({GrantState.ACTIVE, GrantState.EXPIRED, GrantState.REVOKED, GrantState.CLOSED}),
    GrantState.EXPIRED: frozenset(),
    GrantState.REVOKED: frozenset(),
    GrantState.CLOSED: frozenset(),
}

LIVE = frozenset({GrantState.PENDING, GrantState.ACTIVE, GrantState.EXPIRING})
USABLE = frozenset({GrantState.ACTIVE, GrantState.EXPIRING})


def may_move(old: GrantState, new: GrantState) -> bool:
    return new in MOVES[old]
