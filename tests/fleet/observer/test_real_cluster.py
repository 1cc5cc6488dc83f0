"""The observer and the meter on the real control plane: both right, alone and together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Api
from deploy.local.fleet_nodes import set_devices
from fleet.models import Cluster, CoverageGap, GpuInterval, Node, ObservedPod, ProjectSpace
from fleet.observer.meter import meter_pass
from fleet.observer.session import ClusterSession
from fleet.selectors.nodes import NodeView, fleet_nodes
from portal.kernel.gpu_time import instant_of
from portal.tenancy.models import unscoped
from tests.cast import Cast, make_cluster, make_profile
from tests.cluster import BATCH_IMAGE, H100_SELECTOR
from tests.cluster import pod as pod_manifest
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def cluster(cast: Cast, cluster_credential: str, namespace: str) -> Cluster:
    cluster = make_cluster("local", credential=cluster_credential)
    make_profile("h100", cells=False, node_selector=H100_SELECTOR)
    with unscoped("a test's starting point"):
        ProjectSpace.objects.create(cluster=cluster, project=cast.project, namespace=namespace)
    return cluster


@contextmanager
def observing(cluster: Cluster, relist_seconds: int = 300) -> Iterator[ClusterSession]:
    stop = threading.Event()
    session = ClusterSession(cluster, stop=stop, relist_seconds=relist_seconds, pulse_seconds=0.5)

    def run() -> None:
        try:
            session.run()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield session
    finally:
        stop.set()
        thread.join(timeout=30)
        assert not thread.is_alive()


def batch_pod(api: Api, cast: Cast, namespace: str, name: str, devices: int = 2) -> dict[str, Any]:
    manifest = pod_manifest(namespace, name, image=BATCH_IMAGE, devices=devices)
    manifest["metadata"]["labels"] = {
        "slipway/kind": "deployment",
        "slipway/id": "dep_it",
        "slipway/project": cast.project.public_id,
    }
    return api.create(manifest)


def path_of(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def finish(api: Api, pod: dict[str, Any], phase: str = "Succeeded") -> None:
    api.patch(path_of(pod), {"metadata": {"annotations": {"slipway.local/finish": phase}}})


def live_pod(api: Api, pod: dict[str, Any]) -> dict[str, Any]:
    return next(item for item in api.items("v1", "Pod") if item["metadata"]["uid"] == pod["metadata"]["uid"])


def told_by(pod: dict[str, Any]) -> tuple[datetime | None, datetime | None]:
    """[start, end) as the pod's own stamps say."""
    scheduled = next(item for item in pod["status"]["conditions"] if item["type"] == "PodScheduled")
    ends = [item["state"].get("terminated", {}).get("finishedAt") for item in pod["status"].get("containerStatuses", [])]
    return instant_of(scheduled["lastTransitionTime"]), max((end for one in ends if (end := instant_of(one))), default=None)


def interval(pod: dict[str, Any]) -> GpuInterval | None:
    return GpuInterval.objects.filter(pod_uid=pod["metadata"]["uid"]).first()


def running(pod: dict[str, Any]) -> bool:
    found = interval(pod)
    return found is not None and found.running_at is not None


def ended(pod: dict[str, Any]) -> bool:
    found = interval(pod)
    return found is not None and found.ended_at is not None


def in_api(api: Api, pod: dict[str, Any], phase: str) -> dict[str, Any] | None:
    found = live_pod(api, pod)
    return found if found["status"].get("phase") == phase else None


def test_the_watch_meters_a_pod_to_its_own_stamps(cluster: Cluster, cast: Cast, admin: Api, namespace: str) -> None:
    with observing(cluster):
        pod = batch_pod(admin, cast, namespace, "one")
        eventually(lambda: running(pod), what="the interval is open and running")
        found = interval(pod)
        assert found is not None
        assert (found.consumer_id, found.project_id, found.devices) == ("dep_it", cast.project.public_id, 2)
        assert (found.profile_name, found.gpu_equiv_ppm, found.ended_at) == ("h100", 1_000_000, None)
        finish(admin, pod)
        eventually(lambda: ended(pod), what="the interval is closed")
        found = interval(pod)
        assert found is not None
        assert (found.started_at, found.ended_at) == told_by(live_pod(admin, pod))
        assert (found.end_basis, found.end_reason, found.uncertain_us) == ("container_finished", "completed", 0)
        cluster.refresh_from_db()
        assert cluster.reachable is True
        assert cluster.kubernetes_version.startswith("v1.37")
        assert "apps/v1/Deployment" in cluster.installed_kinds


def test_the_meter_alone_is_right_with_the_observer_stopped(
    cluster: Cluster, cast: Cast, admin: Api, namespace: str
) -> None:
    pod = batch_pod(admin, cast, namespace, "one")
    eventually(lambda: in_api(admin, pod, "Running"), what="the pod runs")
    assert meter_pass(cluster.public_id)
    found = interval(pod)
    assert found is not None
    assert (found.ended_at, found.devices, found.consumer_id) == (None, 2, "dep_it")
    finish(admin, pod)
    eventually(lambda: in_api(admin, pod, "Succeeded"), what="the pod is over")
    assert meter_pass(cluster.public_id)
    assert meter_pass(cluster.public_id)
    found = interval(pod)
    assert found is not None
    assert (found.started_at, found.ended_at) == told_by(live_pod(admin, pod))
    assert GpuInterval.objects.count() == 1


def test_watch_and_meter_together_bill_once(cluster: Cluster, cast: Cast, admin: Api, namespace: str) -> None:
    with observing(cluster, relist_seconds=2):
        pods = [batch_pod(admin, cast, namespace, f"p{number}", devices=1) for number in range(5)]
        for pod in pods:
            eventually(lambda pod=pod: running(pod), what="running")
            meter_pass(cluster.public_id)
        for pod in pods[:3]:
            finish(admin, pod)
        meter_pass(cluster.public_id)
        for pod in pods[3:]:
            admin.delete(path_of(pod), grace=0)
        meter_pass(cluster.public_id)
        for pod in pods:
            eventually(lambda pod=pod: ended(pod), what="ended")
    assert GpuInterval.objects.count() == 5
    for pod in pods[:3]:
        found = interval(pod)
        assert found is not None
        assert (found.started_at, found.ended_at) == told_by(live_pod(admin, pod))


def test_a_pod_that_came_and_went_while_nothing_looked_is_not_invented(
    cluster: Cluster, cast: Cast, admin: Api, namespace: str
) -> None:
    pod = batch_pod(admin, cast, namespace, "one")
    eventually(lambda: in_api(admin, pod, "Running"), what="the pod runs")
    assert meter_pass(cluster.public_id)
    admin.delete(path_of(pod), grace=0)
    eventually(lambda: all(item["metadata"]["uid"] != pod["metadata"]["uid"] for item in admin.items("v1", "Pod")))
    unseen = batch_pod(admin, cast, namespace, "two")
    admin.delete(path_of(unseen), grace=0)
    eventually(lambda: all(item["metadata"]["uid"] != unseen["metadata"]["uid"] for item in admin.items("v1", "Pod")))
    assert meter_pass(cluster.public_id)
    found = interval(pod)
    assert found is not None
    assert found.end_basis == "last_evidence"
    assert found.uncertain_us > 0
    assert interval(unseen) is None


def test_an_api_server_that_dies_and_returns_breaks_no_interval(
    cluster: Cluster, cast: Cast, admin: Api, namespace: str, control_plane: ControlPlane
) -> None:
    with observing(cluster):
        pod = batch_pod(admin, cast, namespace, "one")
        eventually(lambda: running(pod), what="running")
        control_plane.kill_apiserver()
        eventually(lambda: Cluster.objects.get().reachable is False, within=60, what="the cluster shows as not reachable")
        assert not meter_pass(cluster.public_id)
        assert not ended(pod)
        assert ObservedPod.objects.filter(gone_at=None).exists()
        control_plane.start_apiserver()
        eventually(lambda: Cluster.objects.get().reachable is True, within=60, what="reachable again")
        finish(admin, pod)
        eventually(lambda: ended(pod), within=60, what="the interval is closed")
        found = interval(pod)
        assert found is not None
        assert (found.started_at, found.ended_at) == told_by(live_pod(admin, pod))
        assert GpuInterval.objects.filter(pod_uid=pod["metadata"]["uid"]).count() == 1


def test_one_observer_a_cluster(cluster: Cluster) -> None:
    with observing(cluster):
        eventually(lambda: Node.objects.exists(), what="the first observer lists nodes")
        answers: list[bool] = []

        def second() -> None:
            answers.append(ClusterSession(cluster, stop=threading.Event()).run())
            connection.close()

        thread = threading.Thread(target=second)
        thread.start()
        thread.join(timeout=30)
        assert answers == [False]
    with observing(cluster):
        eventually(lambda: Cluster.objects.get().reachable, what="the next one takes over")


def h100(name: str) -> NodeView:
    return next(node for node in fleet_nodes() if node.name == name)


def test_c09_a_withdrawn_card_shows_and_every_pod_is_still_metered(
    cluster: Cluster, cast: Cast, admin: Api, namespace: str
) -> None:
    product = "nvidia.com/gpu.product"
    name = next(
        node["metadata"]["name"]
        for node in admin.items("v1", "Node")
        if node["metadata"]["labels"].get(product) == H100_SELECTOR[product]
    )
    pods = [pod_manifest(namespace, f"p{n}", image=BATCH_IMAGE) for n in range(8)]
    for pod in pods:
        pod["spec"]["nodeName"] = name
        admin.create(pod)
    eventually(lambda: sum(item["status"].get("phase") == "Running" for item in admin.items("v1", "Pod")) == 8)
    set_devices(admin, name, "nvidia.com/gpu", allocatable=7)
    assert meter_pass(cluster.public_id)
    node = h100(name)
    assert node.health.text == "degraded: 1 of 8 devices withdrawn"
    (devices,) = node.devices
    assert (devices.used, devices.free, devices.allocatable, devices.capacity) == (8, 0, 7, 8)
    assert (node.profile_name, node.ready, len(node.pods)) == ("h100", True, 8)
    assert GpuInterval.objects.filter(ended_at=None).count() == 8
    assert not CoverageGap.objects.exists()
