"""The one table of request states and moves (contract §2); edge-driven, by people and by the owner's loop."""

from __future__ import annotations

from enum import StrEnum


class RequestState(StrEnum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    FULFILLED = "fulfilled"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    REVOKED = "revoked"
    FAILED = "failed"


class Verdict(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


MOVES: dict[RequestState, frozenset[RequestState]] = {
    RequestState.DRAFT: frozenset({RequestState.SUBMITTED, RequestState.WITHDRAWN}),
    RequestState.SUBMITTED: frozenset(
        {RequestState.APPROVED, RequestState.DENIED, RequestState.WITHDRAWN, RequestState.EXPIRED}
    ),
    RequestState.APPROVED: frozenset(
        {
            RequestState.FULFILLED,
            RequestState.FAILED,
            RequestState.DENIED,
            RequestState.REVOKED,
            RequestState.EXPIRED,
        }
    ),
    RequestState.FULFILLED: frozenset({RequestState.DENIED, RequestState.REVOKED, RequestState.EXPIRED}),
    RequestState.DENIED: frozenset(),
    RequestState.WITHDRAWN: frozenset(),
    RequestState.EXPIRED: frozenset(),
    RequestState.REVOKED: frozenset(),
    RequestState.FAILED: frozenset(),
}
"""A decision taken back after approval (denied, revoked, expired) runs the kind's revoke, whatever the prior state (C37)."""


def may_move(old: RequestState, new: RequestState) -> bool:
    return new in MOVES[old]


OPEN = frozenset({RequestState.DRAFT, RequestState.SUBMITTED})
"""States in which people still have something to do."""

UNDOES_FULFILMENT = frozenset({RequestState.DENIED, RequestState.REVOKED, RequestState.EXPIRED})
"""Moves into these from approved or fulfilled remove what the request had made."""
