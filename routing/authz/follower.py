"""Follows the route table: reads it whole again every second, and stands on the last one while the database is away.

What makes a revocation take at most 5 s on every process (G4): a read each second, at most 3 s long, and one assignment.
Nothing else is cached, so nothing can outlive it (C39).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine

import structlog
from django.db import Error as DatabaseError

from portal.kernel.clock import now
from routing.domain.table import RouteTable
from routing.envoy.discovery import Discovery

PERIOD_SECONDS = 1.0
_GAP_SECONDS = 0.2
_GAP_READINGS = 4
_GAP_SECONDS_MAX = 3.0
"""Between two readings at least, however many calls ask for a fresh one: 0.2 s, or four times as long as the last one took.
So guesses at keys never cost more than a fifth of a core, and a revocation stays within its bound (G4)."""

_log = structlog.get_logger(__name__)


class Follower:
    """``read`` gives a new table, or raises a database error; it is awaited by one task at a time."""

    def __init__(self, read: Callable[[], Awaitable[RouteTable]], *, period_seconds: float = PERIOD_SECONDS) -> None:
        self._read = read
        self._period = period_seconds
        self._wanted = asyncio.Event()
        self._finished = asyncio.Event()
        self._changed = asyncio.Event()
        self._begun = 0
        self._failing_since = ""
        self.failures = 0
        self.table: RouteTable | None = None
        self.discovery: Discovery | None = None

    async def follow(self) -> None:
        """Until cancelled: read, wait for the period or for somebody who wants a fresh table, read again."""
        loop = asyncio.get_running_loop()
        while True:
            self._wanted.clear()
            self._begun += 1
            began = loop.time()
            await self.refresh()
            gap = min(max(_GAP_SECONDS, _GAP_READINGS * (loop.time() - began)), _GAP_SECONDS_MAX)
            event, self._finished = self._finished, asyncio.Event()
            event.set()
            await asyncio.sleep(gap)
            await _within(self._wanted.wait(), self._period - gap)

    async def fresh(self, seconds: float) -> None:
        """Wait for one reading that begins after this call, at most ``seconds``; all who wait share it."""
        begun = self._begun
        self._wanted.set()

        async def read_since() -> None:
            # The reading under way may have looked before this call did: it does not count.
            finished = self._finished
            while True:
                await finished.wait()
                if self._begun > begun:
                    return
                finished = self._finished
                self._wanted.set()

        await _within(read_since(), seconds)

    async def refresh(self) -> None:
        """Take over what the database says now. When it cannot say, keep what is known: revocations included."""
        try:
            table = await self._read()
        except DatabaseError as error:
            self.failures += 1
            if not self._failing_since:
                self._failing_since = f"{now():%Y-%m-%dT%H:%M:%SZ}"
                _log.warning("route table not readable, standing on the last one", error=str(error))
            return
        if self._failing_since:
            _log.info("route table readable again", since=self._failing_since)
            self._failing_since = ""
        before, self.table = self.table, table
        self.discovery = Discovery(table, self.discovery)
        if before is None or before.routes != table.routes:
            self._wake()

    async def changed(self, seconds: float) -> None:
        """Wait for other routes than now, at most ``seconds``."""
        await _within(self._changed.wait(), seconds)

    def _wake(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()


async def _within(awaited: Coroutine[None, None, object], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await awaited
