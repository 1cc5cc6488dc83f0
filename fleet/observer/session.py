"""One cluster, observed: watchers fill a queue, one writer empties it. Lives as long as its lock."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from fleet.cluster import ClusterError, ClusterPort, connect
from fleet.models import Cluster
from fleet.observer.kinds import NODES, watched
from fleet.observer.lock import ObserverLock
from fleet.observer.messages import Answered, Listed, Lost, Message
from fleet.observer.watcher import RELIST_SECONDS, Watcher
from fleet.observer.writer import ClusterWriter
from portal.kernel.clock import now

PULSE_SECONDS = 5.0
BATCH = 500
QUEUE = 5000
DATABASE_WAIT = 1.0
NODES_FIRST_SECONDS = 10.0
DESCRIBE_EVERY = timedelta(minutes=5)

_log = structlog.get_logger(__name__)


class ClusterSession:
    """``run`` returns when the lock is lost, a watcher died, or ``stop`` is set; the caller starts a new session."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        stop: threading.Event,
        open_cluster: Callable[[str], ClusterPort] = connect,
        relist_seconds: int = RELIST_SECONDS,
        pulse_seconds: float = PULSE_SECONDS,
    ) -> None:
        self.cluster = cluster
        self.writer = ClusterWriter(cluster)
        self._stop = stop
        self._over = threading.Event()
        self._nodes_told = threading.Event()
        self._open_cluster = open_cluster
        self._relist_seconds = relist_seconds
        self._pulse_seconds = pulse_seconds
        self._queue: queue.Queue[Message] = queue.Queue(QUEUE)

    def run(self) -> bool:
        """Observe until the end; False at once when another process observes this cluster."""
        lock = ObserverLock(self.cluster.pk)
        if not lock.acquire():
            return False
        _log.info("observer.session_begins", cluster=self.cluster.name)
        threads = self._start()
        try:
            reported: datetime | None = None
            while not self._stop.is_set() and all(thread.is_alive() for thread in threads):
                batch = self._batch()
                if batch and not self._stored(batch):
                    break
                if reported is None or (now() - reported).total_seconds() >= self._pulse_seconds:
                    reported = now()
                    if not lock.held():
                        break
                    self._reported()
        finally:
            self._over.set()
            lock.release()
            _log.info("observer.session_ends", cluster=self.cluster.name)
        return True

    def _start(self) -> list[threading.Thread]:
        watchers = [
            Watcher(
                kind,
                connect=lambda: self._open_cluster(self.cluster.credential),
                tell=self._tell,
                stop=self._over,
                relist_seconds=self._relist_seconds,
            )
            for kind in watched()
        ]
        threads = [
            threading.Thread(
                target=self._watch, args=(watcher,), name=f"watch {self.cluster.name} {watcher.kind}", daemon=True
            )
            for watcher in watchers
        ]
        threads.append(threading.Thread(target=self._pulse, name=f"pulse {self.cluster.name}", daemon=True))
        for thread in threads:
            thread.start()
        return threads

    def _watch(self, watcher: Watcher) -> None:
        """Nodes come first: an interval takes its profile from the node that its pod is on."""
        if watcher.kind != NODES:
            self._nodes_told.wait(NODES_FIRST_SECONDS)
        watcher.run()

    def _tell(self, message: Message) -> None:
        """Hand over to the writer; waits while it is behind, and drops everything once the session is over."""
        while not self._over.is_set():
            try:
                self._queue.put(message, timeout=1)
            except queue.Full:
                continue
            if isinstance(message, Listed | Lost) and message.kind == NODES:
                self._nodes_told.set()
            return

    def _pulse(self) -> None:
        """A plain question every few seconds: a quiet watch alone does not tell a quiet cluster from a dead one."""
        described_at: datetime | None = None
        while not self._over.is_set():
            try:
                port = self._open_cluster(self.cluster.credential)
                version = port.version().git_version
                if described_at is None or now() - described_at > DESCRIBE_EVERY:
                    kinds = tuple(f"{resource.api_version}/{resource.kind}" for resource in port.api_resources())
                    described_at = now()
                    self._tell(Answered(described_at, version, kinds))
                else:
                    self._tell(Answered(now()))
            except ClusterError as error:
                self._tell(Lost(None, str(error), now()))
            self._over.wait(self._pulse_seconds)

    def _batch(self) -> list[Message]:
        """What is there now, at most BATCH; waits a moment for the first."""
        batch: list[Message] = []
        try:
            batch.append(self._queue.get(timeout=min(1.0, self._pulse_seconds)))
            while len(batch) < BATCH:
                batch.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return batch

    def _stored(self, batch: list[Message]) -> bool:
        """Write the batch, repeated until the database takes it; False when the session ends before.

        What the database refuses for its content is narrowed down to the one message, which is logged and passed over:
        a poison object must not stop the meter for all others.
        """
        while not self._stop.is_set():
            try:
                self.writer.write(batch)
                return True
            except (OperationalError, InterfaceError) as error:
                _log.warning("observer.not_stored", cluster=self.cluster.name, messages=len(batch), error=str(error))
                connection.close()
                self._stop.wait(DATABASE_WAIT)
            except DatabaseError as error:
                if len(batch) == 1:
                    _log.error("observer.refused", cluster=self.cluster.name, message=repr(batch[0])[:500], error=str(error))
                    return True
                half = len(batch) // 2
                return self._stored(batch[:half]) and self._stored(batch[half:])
        return False

    def _reported(self) -> None:
        try:
            self.writer.report(now(), backlog=self._queue.qsize())
        except (OperationalError, InterfaceError) as error:
            _log.warning("observer.not_reported", cluster=self.cluster.name, error=str(error))
            connection.close()
