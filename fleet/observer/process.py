"""The observer process: a session for every enabled cluster, also for those that are added while it runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError, connection

from fleet.models import Cluster
from fleet.observer.session import ClusterSession

LOOK_SECONDS = 5.0
STOP_SECONDS = 10.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Running:
    """A session's thread, how to end it, and the credential it uses."""

    thread: threading.Thread
    over: threading.Event
    credential: str


class ObserverProcess:
    """``run`` returns when ``stop`` is set. Several processes may run: each cluster is observed by one of them."""

    def __init__(self, *, stop: threading.Event, look_seconds: float = LOOK_SECONDS) -> None:
        self._stop = stop
        self._look_seconds = look_seconds
        self._sessions: dict[int, _Running] = {}

    def run(self) -> None:
        """Every few seconds: start what is missing (new clusters, sessions that ended), stop what is disabled."""
        try:
            while not self._stop.is_set():
                self._look()
                self._stop.wait(self._look_seconds)
        finally:
            for running in self._sessions.values():
                running.over.set()
            for running in self._sessions.values():
                running.thread.join(timeout=STOP_SECONDS)

    def _look(self) -> None:
        try:
            enabled = {cluster.pk: cluster for cluster in Cluster.objects.filter(enabled=True)}
        except (DatabaseError, InterfaceError) as error:
            _log.warning("observer.database_lost", error=str(error))
            connection.close()
            return
        for pk in list(self._sessions):
            running = self._sessions[pk]
            if pk not in enabled or enabled[pk].credential != running.credential:
                running.over.set()
            if not running.thread.is_alive():
                del self._sessions[pk]
        for pk, cluster in enabled.items():
            if pk not in self._sessions:
                self._begin(cluster)

    def _begin(self, cluster: Cluster) -> None:
        over = threading.Event()
        session = ClusterSession(cluster, stop=over)
        thread = threading.Thread(target=_observe, args=(session,), name=f"observe {cluster.name}", daemon=True)
        self._sessions[cluster.pk] = _Running(thread, over, cluster.credential)
        thread.start()


def _observe(session: ClusterSession) -> None:
    try:
        session.run()
    finally:
        connection.close()
