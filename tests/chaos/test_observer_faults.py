"""The observer under fire: whatever breaks, afterwards every finished pod is billed once, to its own stamps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Api
from fleet.models import Cluster, GpuInterval, ObservedPod
from fleet.observer.meter import meter_pass
from fleet.observer.process import ObserverProcess
from portal.kernel.gpu_time import instant_of
from tests.cast import Cast, make_cluster
from tests.cluster import BATCH_IMAGE
from tests.cluster import pod as pod_manifest
from tests.cluster_faults import FaultyApi
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

PODS = 4
LIST = r"GET /api/v1/pods\?(?!.*watch)"
WATCH = r"GET /api/v1/pods\?.*watch"


@pytest.fixture
def cluster(cast: Cast, cluster_credential: str) -> Cluster:
    return make_cluster("local", credential=cluster_credential)


@pytest.fixture
def observer(cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Starts the observer process's main loop in a thread."""
    stop = threading.Event()

    def run() -> None:
        try:
            ObserverProcess(stop=stop, look_seconds=0.2).run()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    yield thread.start
    stop.set()
    if thread.ident is not None:
        thread.join(timeout=60)
        assert not thread.is_alive()


def uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def path_of(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def make_pods(api: Api, namespace: str, prefix: str = "p") -> list[dict[str, Any]]:
    return [api.create(pod_manifest(namespace, f"{prefix}{number}", image=BATCH_IMAGE)) for number in range(PODS)]


def finish(api: Api, pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        api.patch(path_of(pod), {"metadata": {"annotations": {"slipway.local/finish": "Succeeded"}}})


def all_seen(pods: list[dict[str, Any]]) -> bool:
    return ObservedPod.objects.filter(uid__in=[uid(pod) for pod in pods], running_at__isnull=False).count() == len(pods)


def billed(pods: list[dict[str, Any]]) -> bool:
    uids = [uid(pod) for pod in pods]
    return GpuInterval.objects.filter(pod_uid__in=uids).exclude(ended_at=None).count() == len(pods)


def agree(api: Api, pods: list[dict[str, Any]]) -> None:
    """One interval a pod, from its PodScheduled to its finishedAt."""
    eventually(lambda: billed(pods), within=90, what="every pod is billed")
    live = {uid(item): item for item in api.items("v1", "Pod")}
    for pod in pods:
        status = live[uid(pod)]["status"]
        interval = GpuInterval.objects.get(pod_uid=uid(pod))
        scheduled = next(item for item in status["conditions"] if item["type"] == "PodScheduled")
        (container,) = status["containerStatuses"]
        assert interval.started_at == instant_of(scheduled["lastTransitionTime"])
        assert interval.ended_at == instant_of(container["state"]["terminated"]["finishedAt"])
        assert (interval.end_basis, interval.uncertain_us) == ("container_finished", 0)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([(WATCH, {"cut": 3, "times": 4})], id="watch cut inside a line"),
        pytest.param([(WATCH, {"status": 410, "times": 3})], id="watch answers 410"),
        pytest.param([(WATCH, {"drop": True, "times": 3}), (LIST, {"drop": True, "times": 2})], id="connections dropped"),
        pytest.param(
            [
                (LIST, {"status": 500}),
                (LIST, {"status": 429, "retry_after": 1}),
                (LIST, {"status": 403}),
                (WATCH, {"cut": 1}),
            ],
            id="lists refused",
        ),
        pytest.param(
            [(LIST, {"delay": 2.0}), (LIST, {"cut": 0}), (WATCH, {"cut": 0, "times": 2})], id="slow lists and half answers"
        ),
    ],
)
def test_faults_of_the_api_server_cost_no_second_and_bill_none_twice(
    cluster: Cluster,
    observer: Callable[[], None],
    admin: Api,
    namespace: str,
    faulty_api: FaultyApi,
    faults: list[tuple[str, dict[str, Any]]],
) -> None:
    early = [faulty_api.add(pattern, **what) for pattern, what in faults]
    observer()
    pods = make_pods(admin, namespace)
    eventually(lambda: all_seen(pods), within=90, what="every pod is seen running")
    late = [faulty_api.add(pattern, **what) for pattern, what in faults]
    finish(admin, pods)
    agree(admin, pods)
    assert all(one.hits + two.hits for one, two in zip(early, late, strict=True))
    assert GpuInterval.objects.count() == PODS


def test_a_database_that_drops_every_connection_costs_nothing(
    cluster: Cluster, observer: Callable[[], None], admin: Api, namespace: str
) -> None:
    observer()
    pods = make_pods(admin, namespace)
    for _ in range(4):
        drop_connections()
    eventually(lambda: all_seen(pods), within=90, what="every pod is seen running")
    drop_connections()
    finish(admin, pods)
    drop_connections()
    agree(admin, pods)
    assert GpuInterval.objects.count() == PODS


def drop_connections() -> None:
    """As a restart of Postgres does it: every session of the database ends, the observer's lock with it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_an_api_server_killed_again_and_again_bills_once(
    cluster: Cluster, observer: Callable[[], None], admin: Api, namespace: str, control_plane: ControlPlane
) -> None:
    observer()
    pods = make_pods(admin, namespace)
    eventually(lambda: all_seen(pods), within=60, what="every pod is seen running")
    for _ in range(2):
        control_plane.kill_apiserver()
        assert not meter_pass(cluster.public_id)
        control_plane.start_apiserver()
    finish(admin, pods)
    agree(admin, pods)
    assert GpuInterval.objects.count() == PODS
