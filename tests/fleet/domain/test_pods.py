"""Reading raw pods: bound is not running, junk raises nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.pods import Standing, pod_facts, standing
from tests.fleet.pods import clock, facts, raw_pod


def test_c02_how_far_a_pod_has_come() -> None:
    bound = {"phase": "Pending", "scheduled": clock("10:00:00")}
    assert standing(facts(**bound, waiting="ErrImagePull")) == "bound, image pull failing"
    assert standing(facts(**bound, waiting="ImagePullBackOff")) == "bound, image pull failing"
    assert standing(facts(**bound, waiting="CreateContainerConfigError")) is Standing.MISCONFIGURED
    assert standing(facts(**bound, waiting="ContainerCreating")) is Standing.STARTING
    assert standing(facts(**bound, waiting="CrashLoopBackOff")) is Standing.CRASHING
    assert standing(facts(phase="Pending", node="")) == "waiting for capacity"
    assert standing(facts(running=clock("10:00:00"))) is Standing.RUNNING
    assert standing(facts(running=clock("10:00:00"), ready="True")) is Standing.READY
    assert standing(facts(ready="True", deletion=clock("10:00:00"))) is Standing.TERMINATING
    assert standing(facts(phase="Failed", deletion=clock("10:00:00"))) is Standing.FAILED


def test_c17_a_bookmark_is_no_pod() -> None:
    assert pod_facts({"kind": "Pod", "metadata": {"resourceVersion": "77", "creationTimestamp": None}}) is None


def test_the_serving_port_is_the_one_named_http() -> None:
    raw = raw_pod()
    raw["spec"]["containers"][0]["ports"] = [
        {"name": "metrics", "containerPort": 9000},
        {"name": "http", "containerPort": 8080},
    ]
    found = pod_facts(raw)
    assert found is not None
    assert found.port == 8080


def test_nul_and_endless_texts_fit_a_row() -> None:
    raw = raw_pod(reason="x\0y" + "z" * 5000)
    found = pod_facts(raw)
    assert found is not None
    assert "\0" not in found.status["reason"]
    assert len(found.status["reason"]) <= 1000


_keys = st.sampled_from(
    """uid metadata labels annotations name namespace resourceVersion phase conditions type lastTransitionTime
    containerStatuses state waiting terminated running finishedAt reason containers ports containerPort nodeName status
    resources limits nvidia.com/gpu""".split()  # noqa: SIM905 - a list of words
)
_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("True"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=25,
)


@given(metadata=_junk, spec=_junk, status=_junk)
@pytest.mark.filterwarnings("error")
def test_no_object_however_odd_raises(metadata: Any, spec: Any, status: Any) -> None:
    if isinstance(metadata, dict):
        metadata = {**metadata, "uid": "u"}
    found = pod_facts({"metadata": metadata, "spec": spec, "status": status})
    if found is not None:
        standing(found)
