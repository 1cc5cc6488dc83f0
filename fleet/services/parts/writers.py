"""One writer of a cluster's observations at a time, over all processes, until the transaction ends."""

from __future__ import annotations

from django.db import connection

from fleet.models import Cluster

_LOCK_SPACE = 0x51_0B
"""First half of the advisory lock key: Slipway's observations; the second half is the cluster's id."""


def cluster_lock(cluster: Cluster) -> None:
    """Wait for the cluster's transaction lock: the watch and the full list merge the same rows."""
    if not connection.in_atomic_block:
        raise AssertionError("the lock lasts as long as the transaction it is taken in")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_SPACE, cluster.pk])
