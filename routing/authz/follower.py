"""Follows the route table: reads it whole again every second, and stands on the last one while the database is away.

What makes a revocation take at most 5 s on every process (G4): a read each second, at most 3 s long, and one assignment.
Nothing else is cached, so nothing can outlive it (C39).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from django.db import Error as DatabaseError

from portal.kernel.clock import now
from routing.domain.table import RouteTable
from routing.envoy.discovery import Discovery

PERIOD_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Follower:
    """``read`` gives a new table, or raises a database error; it is awaited by one task at a time."""

    def __init__(self, read: Callable[[], Awaitable[RouteTable]]) -> None:
        self._read = read
        self._changed = asyncio.Event()
        self._failing_since = ""
        self.table: RouteTable | None = None
        self.discovery: Discovery | None = None

    async def follow(self) -> None:
        """Until cancelled: read, wait, read again."""
        while True:
            await self.refresh()
            await asyncio.sleep(PERIOD_SECONDS)

    async def refresh(self) -> None:
        """Take over what the database says now. When it cannot say, keep what is known: revocations included."""
        try:
            table = await self._read()
        except DatabaseError as error:
            if not self._failing_since:
                self._failing_since = f"{now():%Y-%m-%dT%H:%M:%SZ}"
                _log.warning("route table not readable, standing on the last one", error=str(error))
            return
        if self._failing_since:
            _log.info("route table readable again", since=self._failing_since)
            self._failing_since = ""
        before, self.table = self.table, table
        if before is None or self.discovery is None or before.routes != table.routes:
            self.discovery = Discovery(table)
            self._wake()
        else:
            self.discovery = self.discovery.at(table.read_at)
            if before.read_at != table.read_at:
                self._wake()

    async def changed(self, seconds: float) -> None:
        """Wait for the next table, at most ``seconds``."""
        event = self._changed
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return

    def _wake(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()
