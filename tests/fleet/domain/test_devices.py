"""K3 and K4: how many devices a pod holds, and what a slot is worth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.devices import effective_request, is_device, slot_ppm, whole_devices
from fleet.domain.findings import FindingKind

GPU = "nvidia.com/gpu"


def container(count: Any = None, *, sidecar: bool = False, where: str = "limits", resource: str = GPU) -> dict[str, Any]:
    body: dict[str, Any] = {"resources": {where: {resource: count, "cpu": "500m"}}} if count is not None else {}
    return body | ({"restartPolicy": "Always"} if sidecar else {})


def count(*apps: Any, init: tuple[Any, ...] = ()) -> int:
    found, _ = effective_request({"containers": list(apps), "initContainers": list(init)})
    return found.get(GPU, 0)


def test_apps_and_sidecars_add_up() -> None:
    assert count(container("2"), container("1"), init=(container("1", sidecar=True),)) == 4


def test_an_init_container_counts_only_while_it_is_more() -> None:
    assert count(container("2"), init=(container("1"),)) == 2
    assert count(container("2"), init=(container("8"), container("3"))) == 8


def test_sidecars_before_an_init_container_run_beside_it() -> None:
    assert count(container("1"), init=(container("2", sidecar=True), container("4"))) == 6
    assert count(container("1"), init=(container("4"), container("2", sidecar=True))) == 4


def test_limits_stand_in_for_requests_and_requests_win() -> None:
    assert count(container("3", where="limits")) == 3
    both = {"resources": {"limits": {GPU: "4"}, "requests": {GPU: "2"}}}
    assert count(both) == 2


def test_each_resource_is_counted_apart() -> None:
    found, _ = effective_request({"containers": [container("1"), container("2", resource="amd.com/gpu")]})
    assert found == {"nvidia.com/gpu": 1, "amd.com/gpu": 2}


def test_no_device_no_entry() -> None:
    assert effective_request({"containers": [container(), container("0")]}) == ({}, ())


@pytest.mark.parametrize("bad", ["1_0", "two", "0.5", "-1", 1.5, True, None, [], "9e30", ""])
def test_an_unreadable_count_is_flagged_never_guessed(bad: Any) -> None:
    found, findings = effective_request({"containers": [{"resources": {"limits": {GPU: bad}}}]})
    assert found == {}
    assert [finding.kind for finding in findings] == [FindingKind.BAD_QUANTITY]


@pytest.mark.parametrize(("text", "number"), [("8", 8), (8, 8), ("1k", 1000), ("2e1", 20), ("8000m", 8), ("0", 0)])
def test_counts_in_the_api_servers_grammar(text: Any, number: int) -> None:
    assert whole_devices(text) == number


_counts = st.integers(0, 16)
_inits = st.lists(st.tuples(_counts, st.booleans()), max_size=5)


@given(apps=st.lists(_counts, max_size=5), inits=_inits)
def test_k3_equals_the_most_that_is_ever_running_at_once(apps: list[int], inits: list[tuple[int, bool]]) -> None:
    """Against a walk through the pod's life: init containers one by one beside the sidecars so far, then the apps."""
    most, sidecars = 0, 0
    for wanted, sidecar in inits:
        if sidecar:
            sidecars += wanted
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + wanted)
    most = max(most, sidecars + sum(apps))
    spec = {
        "containers": [container(str(wanted)) for wanted in apps],
        "initContainers": [container(str(wanted), sidecar=sidecar) for wanted, sidecar in inits],
    }
    assert effective_request(spec)[0].get(GPU, 0) == most


_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["containers", "initContainers", "resources", "limits", GPU]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(spec=st.dictionaries(st.sampled_from(["containers", "initContainers"]), _junk))
def test_no_spec_however_odd_raises(spec: dict[str, Any]) -> None:
    found, _ = effective_request(spec)
    assert all(count > 0 for count in found.values())


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-2g.20gb", True),
        ("amd.com/gpu", True),
        ("amd.com/cpx_nps4", True),
        ("gpu.intel.com/i915", True),
        ("gpu.intel.com/i915_monitoring", False),
        ("cpu", False),
        ("rdma/hca", False),
        ("hugepages-2Mi", False),
    ],
)
def test_which_resources_are_devices(resource: str, device: bool) -> None:
    assert is_device(resource) is device


def test_an_unknown_shape_is_unknown_not_one() -> None:
    assert slot_ppm("nvidia.com/gpu", {}) == 1_000_000
    assert slot_ppm("amd.com/gpu", {}) == 1_000_000
    assert slot_ppm("nvidia.com/gpu", {"nvidia.com/gpu.replicas": "12"}) is None
    assert slot_ppm("nvidia.com/gpu", {"nvidia.com/gpu.product": "Tesla-T4-SHARED"}) is None
    assert slot_ppm("nvidia.com/mig-1g.10gb", {}) is None
