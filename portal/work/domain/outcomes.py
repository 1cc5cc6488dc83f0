"""What one pass of a loop may end with, and when a row is looked at again (design §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from portal.work.domain.conditions import Condition

BACKOFF_FIRST = timedelta(seconds=1)
BACKOFF_CAP = timedelta(minutes=5)
CRASHES_MAX = 5
"""Passes in a row that died or raised before the row is set aside (C32)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``updates`` are columns of the row, written with the loop's own ones; ``conditions`` replace those of the row.

    ``conditions`` None leaves the row's conditions as they are.
    """

    updates: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Outcome):
    """The cluster is as this generation wants it. ``resync_after`` None means the full resync (RESYNC_SECONDS).

    A row whose objects are proven gone ends with ``updates={"archived_at": now}``.
    """

    resync_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Outcome):
    """All that can be done was done, and the cluster needs time or somebody: look again ``after``. No failure."""

    after: timedelta
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry(Outcome):
    """It did not work, or nobody can say whether it did. Never gives up.

    ``after`` None means the row's own backoff, of which ``at_most`` is a cap lower than the common one.
    """

    error: str
    after: timedelta | None = None
    at_most: timedelta = BACKOFF_CAP


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Outcome):
    """It cannot work until the row or the cluster is changed by somebody; looked at again at the next resync."""

    reason: str
    message: str = ""


def backoff(attempts: int) -> timedelta:
    """The delay after the ``attempts``-th failure in a row (1, 2, 3 …): 1 s, doubling, at most 5 minutes."""
    doublings = min(max(attempts, 1) - 1, 30)
    return min(BACKOFF_FIRST * int(2**doublings), BACKOFF_CAP)
