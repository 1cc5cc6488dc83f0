"""A pod on a node of the local fleet, what waits for it to change, and the process that runs for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from deploy.local.agent_pods import FINISH, deadline_of, stamp

Json = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Occupant:
    """One pod on a node of this fleet: its newest object, and what waits for it to change."""

    pod: Json
    gone: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    @property
    def leaving(self) -> bool:
        """It is being deleted, or is already gone from the API."""
        return self.gone or deadline_of(self.pod) is not None

    @property
    def finish(self) -> str:
        """The terminal phase that a test asks for by annotation, or nothing."""
        return str(self.pod["metadata"].get("annotations", {}).get(FINISH, ""))

    def see(self, pod: Json) -> None:
        self.pod = pod
        self._changed.set()

    def lose(self) -> None:
        self.gone = True
        self._changed.set()

    async def until(self, holds: Callable[[], bool], *, at_most: Callable[[], float] | None = None) -> bool:
        """Wait until ``holds()``; False when ``at_most()`` seconds (asked anew after each change) passed first."""
        while not holds():
            self._changed.clear()
            left = at_most() if at_most is not None else None
            if left is not None and left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return True

    def wake(self) -> None:
        self._changed.set()


@dataclass
class Engine:
    """A started process and when it started and ended."""

    process: asyncio.subprocess.Process
    started: datetime
    ended: datetime | None = None

    @property
    def code(self) -> int | None:
        return self.process.returncode

    def state(self, *, reason: str = "") -> Json:
        """Its terminated container state. A process ended by a signal has 128 + its number, as containers report it."""
        code = self.code or 0
        code = 128 - code if code < 0 else code
        return {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Completed" if code == 0 else "Error"),
                "startedAt": stamp(self.started),
                "finishedAt": stamp(self.ended or now()),
            }
        }
