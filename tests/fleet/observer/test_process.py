"""`manage.py fleet_observe` as it runs in production: one process, small, stopped by SIGTERM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from deploy.local.controlplane_api import Api
from fleet.models import Cluster, Node, ObservedPod
from fleet.observer.lock import ObserverLock
from portal.work.models import Heartbeat
from tests.cast import Cast, make_cluster
from tests.cluster import BATCH_IMAGE
from tests.cluster import pod as pod_manifest
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

LIMIT_KIB = 150 * 1024


def peak_kib(pid: int) -> int:
    """Peak resident memory of a process."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found is not None
    return int(found[1])


@pytest.fixture
def observer(cast: Cast, cluster_credential: str) -> Iterator[subprocess.Popen[bytes]]:
    make_cluster("local", credential=cluster_credential)
    parts = connection.settings_dict
    place = f"host={parts['HOST']}&port={parts['PORT'] or 5432}"
    url = f"postgresql://{parts['USER']}:{parts['PASSWORD']}@/{parts['NAME']}?{place}"
    process = subprocess.Popen(
        [sys.executable, "manage.py", "fleet_observe"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings.worker", "SLIPWAY_DATABASE_URL": url},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=30)


def test_the_observer_process_is_small_and_stops_when_told(
    observer: subprocess.Popen[bytes], admin: Api, namespace: str
) -> None:
    eventually(lambda: Node.objects.count() >= 9, what="the demo fleet's nodes")
    for number in range(40):
        admin.create(pod_manifest(namespace, f"p{number}", image=BATCH_IMAGE))
    eventually(lambda: ObservedPod.objects.filter(namespace=namespace).count() == 40, what="the pods are seen")
    eventually(lambda: ObservedPod.objects.filter(phase="Running").count() >= 16, what="as many as the agent runs")
    eventually(lambda: Heartbeat.objects.filter(name="observer:local").exists(), what="the heartbeat")
    assert peak_kib(observer.pid) <= LIMIT_KIB
    observer.send_signal(signal.SIGTERM)
    assert observer.wait(timeout=20) == 0


def test_a_disabled_cluster_is_let_go_and_taken_up_again(
    observer: subprocess.Popen[bytes], admin: Api, namespace: str
) -> None:
    eventually(lambda: Node.objects.exists(), what="the observer works")
    cluster = Cluster.objects.get()
    lock = ObserverLock(cluster.pk)
    assert not lock.acquire()
    Cluster.objects.update(enabled=False)
    eventually(lock.acquire, what="the observer lets go of a disabled cluster")
    lock.release()
    admin.create(pod_manifest(namespace, "late", image=BATCH_IMAGE))
    Cluster.objects.update(enabled=True)
    eventually(lambda: ObservedPod.objects.filter(name="late").exists(), what="enabled again, seen again")
