"""C09 and K4: capacity and health say what is offered, and free is never negative."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.health import HealthLevel, node_health
from fleet.domain.inventory import NodeDevices, ProfileMatch, profile_of, summed

H100 = ProfileMatch(1, "h100", "nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
ANY_NVIDIA = ProfileMatch(2, "any-nvidia", "nvidia.com/gpu", {})
GFX = ProfileMatch(3, "gfx1100", "amd.com/gpu", {"flexinfer.ai/gpu.arch": "gfx1100"})
ALL = [ANY_NVIDIA, H100, GFX]


def test_c09_a_withdrawn_card_degrades_the_node_and_free_is_zero_not_minus_one() -> None:
    devices = NodeDevices(capacity=8, allocatable=7, bound=8)
    health = node_health(ready=True, unschedulable=False, devices={"nvidia.com/gpu": devices}, cluster_reachable=True)
    assert health.text == "degraded: 1 of 8 devices withdrawn"
    assert health.level is HealthLevel.DEGRADED
    assert devices.free == 0


def test_ready_is_one_thing_and_devices_another() -> None:
    whole = {"nvidia.com/gpu": NodeDevices(8, 8, 0)}
    assert node_health(ready=True, unschedulable=False, devices=whole, cluster_reachable=True).text == "healthy"
    assert node_health(ready=True, unschedulable=True, devices=whole, cluster_reachable=True).text == "cordoned"
    assert node_health(ready=False, unschedulable=False, devices=whole, cluster_reachable=True).level is HealthLevel.DOWN
    assert node_health(ready=None, unschedulable=False, devices=whole, cluster_reachable=True).level is HealthLevel.UNKNOWN
    assert node_health(ready=True, unschedulable=False, devices=whole, cluster_reachable=False).level is HealthLevel.UNKNOWN


def test_the_narrowest_selector_names_the_node() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert profile_of(labels, {"nvidia.com/gpu": "8"}, ALL) == H100
    assert profile_of({}, {"nvidia.com/gpu": "8"}, ALL) == ANY_NVIDIA


def test_where_labels_contradict_what_the_node_has_they_lose() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "flexinfer.ai/gpu.arch": "gfx1100"}
    assert profile_of(labels, {"amd.com/gpu": "1"}, ALL) == GFX
    assert profile_of(labels, {"nvidia.com/gpu": "0"}, ALL) is None


def test_one_nodes_excess_hides_no_other_nodes_room() -> None:
    capacity = summed([NodeDevices(8, 7, 8), NodeDevices(8, 8, 2), NodeDevices(8, 8, 0, usable=False)])
    assert (capacity.total, capacity.allocatable, capacity.used, capacity.free) == (24, 23, 10, 6)
    assert (capacity.nodes, capacity.largest_node) == (3, 8)


_counts = st.integers(0, 64)


@given(capacity=_counts, allocatable=_counts, bound=_counts, usable=st.booleans())
def test_free_is_never_negative_nor_more_than_offered(capacity: int, allocatable: int, bound: int, usable: bool) -> None:
    assert 0 <= NodeDevices(capacity, allocatable, bound, usable).free <= allocatable
