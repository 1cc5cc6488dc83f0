"""One observer per cluster: a session advisory lock, held on a connection of its own for as long as the session lives."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

_LOCK_SPACE = 0x51_0C


class ObserverLock:
    """Use it from one thread. A lost connection is a lost lock: Postgres gives it to the next who asks."""

    def __init__(self, cluster_pk: int) -> None:
        self._cluster_pk = cluster_pk
        self._connection: BaseDatabaseWrapper | None = None

    def acquire(self) -> bool:
        """Whether this process now is the observer of the cluster; never waits."""
        self.release()
        connection = connections["default"].copy()
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_SPACE, self._cluster_pk])
                held = bool(cursor.fetchone()[0])
        except (DatabaseError, InterfaceError):
            connection.close()
            return False
        if not held:
            connection.close()
            return False
        self._connection = connection
        return True

    def held(self) -> bool:
        """Whether the connection that holds the lock still lives."""
        if self._connection is None:
            return False
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except (DatabaseError, InterfaceError):
            self.release()
            return False
        return True

    def release(self) -> None:
        """Let it go, if it is held; closing the connection frees the lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
