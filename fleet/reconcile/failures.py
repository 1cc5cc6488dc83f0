"""What a loop makes of a cluster that refuses or is silent: Retry while it may change by itself, Blocked when not (D3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fleet.cluster import (
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    NotInstalled,
    StaleObject,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from portal.work.domain.conditions import Condition, Truth
from portal.work.domain.outcomes import BACKOFF_CAP, Blocked, Retry

SYNCED = "Synced"
"""The condition of every loop here: True = the cluster has what the row wants, False = it cannot, Unknown = not known."""

UNREACHABLE_CAP = timedelta(seconds=30)
"""A cluster that was away answers all at once: what waits for it must not wait out a long backoff."""

_REASONS: dict[type[ClusterError], str] = {
    Unreachable: "ClusterUnreachable",
    Unauthorized: "CredentialRefused",
    Forbidden: "Forbidden",
    StaleObject: "ChangedMeanwhile",
    TooManyRequests: "ClusterBusy",
    Conflict: "FieldConflict",
    Invalid: "Misconfigured",
    NotInstalled: "NotInstalled",
}


def reason_of(error: ClusterError) -> str:
    """A CamelCase word for the condition; for what hangs on something not there yet, ``ClusterNotReady``."""
    return _REASONS.get(type(error), "ClusterNotReady")


def outcome_of(error: ClusterError, *, updates: Mapping[str, Any] | None = None) -> Retry | Blocked:
    """The outcome of a pass that met ``error``; its condition ``Synced`` says Unknown where nobody knows.

    A field conflict names each field and its owner.
    """
    reason, message = reason_of(error), message_of(error)
    unknown = isinstance(error, Unreachable | Unauthorized | TooManyRequests)
    condition = Condition(SYNCED, Truth.UNKNOWN if unknown else Truth.FALSE, reason, message)
    conditions, written = (condition,), dict(updates or {})
    if not error.retryable:
        return Blocked(reason=reason, message=message, conditions=conditions, updates=written)
    after = timedelta(seconds=error.retry_after) if isinstance(error, TooManyRequests) else None
    at_most = UNREACHABLE_CAP if isinstance(error, Unreachable) else BACKOFF_CAP
    return Retry(error=f"{reason}: {message}", after=after, at_most=at_most, conditions=conditions, updates=written)


def message_of(error: ClusterError) -> str:
    """What to show people."""
    if isinstance(error, Conflict) and error.fields:
        owned = ", ".join(f"{field} (owned by {owner})" for field, owner in error.fields)
        return f"Others own fields that Slipway wants to set: {owned}."
    if isinstance(error, Invalid) and error.fields:
        return "; ".join(f"{field}: {text}" for field, text in error.fields)
    return error.message
