"""One kind on one cluster: LIST, then WATCH from the list's version, and LIST again whenever in doubt (C16, C17)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

import structlog

from fleet.cluster import BadLine, ClusterError, ClusterPort, Gone, NotInstalled
from fleet.observer.kinds import WatchedKind
from fleet.observer.messages import Current, Listed, Lost, Message, Seen, facts_of
from portal.kernel.clock import now

RELIST_SECONDS = 300
FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0
NOT_INSTALLED_WAIT = 60.0
SHORTEST_ROUND = 1.0
"""At most one relist a second of a server whose watch keeps failing at once."""

_log = structlog.get_logger(__name__)


class RoundEnd(StrEnum):
    """Why a round of list and watch ended; every end is followed by the next list."""

    TIMER = "timer"
    GONE = "gone"
    BAD_LINE = "bad_line"
    SILENT = "silent"
    STOPPED = "stopped"


class Watcher:
    """``tell`` takes each message in order, and may block. ``connect`` opens the cluster anew for each round."""

    def __init__(
        self,
        kind: WatchedKind,
        *,
        connect: Callable[[], ClusterPort],
        tell: Callable[[Message], None],
        stop: threading.Event,
        relist_seconds: int = RELIST_SECONDS,
    ) -> None:
        self.kind = kind
        self._connect = connect
        self._tell = tell
        self._stop = stop
        self._relist_seconds = relist_seconds
        self._wait = FIRST_WAIT

    def run(self) -> None:
        """Rounds without end, until ``stop``; a cluster that does not answer is asked again for ever, ever less often."""
        while not self._stop.is_set():
            began = now()
            try:
                end = self.round()
            except NotInstalled as error:
                _log.info("observer.kind_not_installed", kind=str(self.kind), error=str(error))
                self._stop.wait(NOT_INSTALLED_WAIT)
            except ClusterError as error:
                _log.warning("observer.lost", kind=str(self.kind), error=str(error), wait=self._wait)
                self._tell(Lost(self.kind, str(error), now()))
                self._stop.wait(self._wait)
                self._wait = min(self._wait * 2, LONGEST_WAIT)
            else:
                _log.debug("observer.round_ended", kind=str(self.kind), end=end.value)
                if now() - began < timedelta(seconds=SHORTEST_ROUND):
                    self._stop.wait(SHORTEST_ROUND)

    def round(self) -> RoundEnd:
        """1. List all; a list that does not finish raises, and says nothing of what is missing (C18).
        2. Watch from the list's own version, never from an item's (C16), for ``relist_seconds``.
        3. Come back at the timer, at 410, at a line that is no event (a deletion may be in it), or at a silent end.
        """
        cluster = self._connect()
        asked_at = now()
        listing = cluster.list_all(self.kind.api_version, self.kind.kind)
        version = listing.resource_version
        self._wait = FIRST_WAIT
        facts = [kept for raw in listing.items if (kept := facts_of(self.kind, raw)) is not None]
        del listing
        self._tell(Listed(self.kind, facts, int(version) if version.isdigit() else 0, asked_at, now()))
        del facts
        try:
            return self._follow(cluster, version)
        except Gone:
            return RoundEnd.GONE

    def _follow(self, cluster: ClusterPort, version: str) -> RoundEnd:
        due = now() + timedelta(seconds=self._relist_seconds)
        for event in cluster.watch(
            self.kind.api_version, self.kind.kind, resource_version=version, timeout_s=self._relist_seconds
        ):
            if self._stop.is_set():
                return RoundEnd.STOPPED
            at = now()
            if isinstance(event, BadLine):
                _log.warning("observer.bad_line", kind=str(self.kind), why=event.why)
                return RoundEnd.BAD_LINE
            if event.type == "BOOKMARK":
                self._tell(Current(self.kind, at))
                continue
            facts = facts_of(self.kind, event.object)
            if facts is None:
                return RoundEnd.BAD_LINE
            self._tell(Seen(self.kind, facts, event.type == "DELETED", at))
        if now() < due - timedelta(seconds=1):
            return RoundEnd.SILENT
        self._tell(Current(self.kind, now()))
        return RoundEnd.TIMER
