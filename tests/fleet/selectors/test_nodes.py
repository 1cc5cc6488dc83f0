"""The fleet's nodes and capacity: what is taken and free, at the same cost for two nodes and for twenty."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.domain.nodes import NodeFacts
from fleet.models import Cluster, Node
from fleet.selectors.capacity import profile_capacity
from fleet.selectors.nodes import fleet_nodes
from fleet.selectors.pods import pod_views
from fleet.services.observations import PodSight, nodes_listed, nodes_seen, pods_seen
from tests.cast import Cast, make_cluster, make_profile
from tests.fleet.pods import clock, facts

pytestmark = pytest.mark.django_db

AT = clock("12:00:00")
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


@pytest.fixture
def cluster(cast: Cast) -> Cluster:
    return make_cluster("lab", reachable=True, last_seen_at=AT)


def node(number: int, *, version: int = 1, **more: Any) -> NodeFacts:
    fields: dict[str, Any] = {
        "labels": H100,
        "capacity": {"nvidia.com/gpu": "8", "cpu": "64"},
        "allocatable": {"nvidia.com/gpu": "8", "cpu": "63500m"},
        "ready": True,
    }
    return NodeFacts(uid=f"node-{number}", name=f"gpu-{number}", version=version, **{**fields, **more})


def put(cluster: Cluster, *nodes: NodeFacts) -> None:
    nodes_seen(cluster=cluster, nodes=nodes, at=AT)


def bind(cluster: Cluster, uid: str, number: int, devices: int) -> None:
    pod = facts(uid, node=f"gpu-{number}", devices=devices, scheduled=AT)
    pods_seen(cluster=cluster, sights=[PodSight(pod, AT)])


def test_capacity_is_summed_node_by_node(cluster: Cluster) -> None:
    profile = make_profile("h100", cells=False)
    empty = make_profile("gfx906", cells=False, resource_name="amd.com/gpu", node_selector={"x": "y"})
    put(cluster, node(1), node(2, allocatable={"nvidia.com/gpu": "7"}), node(3, unschedulable=True), node(4, ready=None))
    bind(cluster, "a", 1, 3)
    for number in range(8):
        bind(cluster, f"b{number}", 2, 1)
    found = profile_capacity(profile_ids=[profile.pk, empty.pk])
    capacity = found[profile.pk]
    assert (capacity.total, capacity.allocatable, capacity.used, capacity.free) == (32, 31, 11, 5)
    assert (capacity.nodes, capacity.largest_node) == (4, 8)
    assert (found[empty.pk].nodes, found[empty.pk].free) == (0, 0)


def test_d3_a_cluster_that_is_not_reachable_offers_nothing_and_forgets_nothing(cluster: Cluster) -> None:
    profile = make_profile("h100", cells=False)
    put(cluster, node(1))
    bind(cluster, "a", 1, 3)
    Cluster.objects.update(reachable=False)
    capacity = profile_capacity()[profile.pk]
    assert (capacity.total, capacity.used, capacity.free) == (8, 3, 0)
    (view,) = fleet_nodes()
    assert view.health.text == "unknown: cluster not reachable"


def test_the_newest_version_wins_and_absence_ends_a_node(cluster: Cluster) -> None:
    put(cluster, node(1, version=10, ready=False), node(2, version=5))
    put(cluster, node(1, version=9, ready=True))
    assert [view.ready for view in fleet_nodes()] == [False, True]
    nodes_listed(cluster=cluster, nodes=[node(1, version=10, ready=False)], version=4, at=AT)
    assert len(fleet_nodes()) == 2
    nodes_listed(cluster=cluster, nodes=[node(1, version=10, ready=False)], version=20, at=AT)
    assert [view.name for view in fleet_nodes()] == ["gpu-1"]


def test_a_late_version_does_not_bring_a_deleted_node_back(cluster: Cluster) -> None:
    put(cluster, node(1, version=10))
    nodes_seen(cluster=cluster, nodes=[], at=AT, gone=[node(1, version=12)])
    put(cluster, node(1, version=11))
    assert fleet_nodes() == []
    assert Node.objects.get().gone_at == AT


def test_a_recreated_node_of_the_same_name_is_another_node(cluster: Cluster) -> None:
    put(cluster, node(1, version=10))
    nodes_seen(cluster=cluster, nodes=[], at=AT, gone=[node(1, version=12)])
    again = NodeFacts(uid="fresh", name="gpu-1", version=20, capacity={"nvidia.com/gpu": "4"}, ready=True)
    put(cluster, again)
    (view,) = fleet_nodes()
    assert view.devices[0].capacity == 4


def test_the_same_queries_for_two_nodes_and_for_twenty(cluster: Cluster, django_assert_num_queries: Any) -> None:
    make_profile("h100", cells=False)
    for count in (2, 20):
        for number in range(count):
            put(cluster, node(number))
            bind(cluster, f"{count}-{number}", number, 1)
        with django_assert_num_queries(3):
            assert len(fleet_nodes()) == count
        with django_assert_num_queries(3):
            profile_capacity()


def test_pod_views_say_how_far_each_pod_is(cluster: Cluster, cast: Cast) -> None:
    bind(cluster, "stranger", 1, 1)
    assert pod_views(kind="deployment", id="dep_a") == []
