"""The only place that reads the wall clock; tests move it with ``frozen``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta


class FrozenClock:
    """A clock that stands still until it is advanced."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def advance(self, by: timedelta) -> None:
        self.at += by


_frozen: ContextVar[FrozenClock | None] = ContextVar("slipway_frozen_clock", default=None)


def now() -> datetime:
    """The current instant, timezone-aware, in UTC, with microseconds."""
    clock = _frozen.get()
    return clock.at if clock is not None else datetime.now(UTC)


@contextmanager
def frozen(at: datetime) -> Iterator[FrozenClock]:
    """Within the block, in this thread, ``now()`` answers ``at`` (aware) and whatever the clock is advanced to."""
    clock = FrozenClock(at.astimezone(UTC))
    token = _frozen.set(clock)
    try:
        yield clock
    finally:
        _frozen.reset(token)
