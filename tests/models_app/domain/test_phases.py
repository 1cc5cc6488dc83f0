from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.facts import facts_of
from models_app.domain.phases import Declaration, FactState, Phase, Substage, phase_of, substage_of
from models_app.domain.sightings import Sighting, deployment_sighting, event_sighting, pod_sighting, sighting_of
from tests.models_app.domain.pods import raw_deployment, raw_pod

WANTED = Declaration(wanted=True, replicas_min=1, replicas_max=1, applied=True, cluster_reachable=True)
AT = datetime(2026, 11, 1, tzinfo=UTC)


def seen(*pods: dict[str, Any], deployment: dict[str, Any] | None = None, complete: bool = True) -> Sighting:
    return Sighting(
        workload=deployment_sighting(raw_deployment(replicas=max(1, len(pods))) if deployment is None else deployment),
        pods=tuple(pod_sighting(pod, generation_annotation="slipway/generation") for pod in pods),
        complete=complete,
    )


LOADING = raw_pod(ready=False)
CASES: dict[str, tuple[Declaration, Sighting | None, Phase, str]] = {
    "nothing seen yet": (WANTED, None, Phase.ADMITTED, ""),
    "ready": (WANTED, seen(raw_pod()), Phase.READY, ""),
    "newer generation not applied": (replace(WANTED, applied=False), seen(raw_pod()), Phase.DEGRADED, "WaitingForPodsReady"),
    "controller has not seen the spec": (
        WANTED,
        seen(raw_pod(), deployment=raw_deployment(generation=4, observed=3)),
        Phase.DEGRADED,
        "WaitingForPodsReady",
    ),
    "old pods only": (WANTED, seen(raw_pod(), deployment=raw_deployment(updated=0)), Phase.DEGRADED, "WaitingForPodsReady"),
    "loading": (WANTED, seen(LOADING), Phase.LOADING, "WaitingForPodsReady"),
    "one of two": (WANTED, seen(raw_pod(), raw_pod("u2", ready=False)), Phase.DEGRADED, "WaitingForPodsReady"),
    "no node": (
        WANTED,
        seen(raw_pod(phase="Pending", ready=None, scheduled=False, unschedulable="0/9 nodes", running=False)),
        Phase.LOADING,
        "WaitingForCapacity",
    ),
    "image pull": (
        WANTED,
        seen(raw_pod(phase="Pending", ready=False, waiting="ImagePullBackOff")),
        Phase.LOADING,
        "ImagePullFailing",
    ),
    "crash loop": (
        WANTED,
        seen(raw_pod(ready=False, waiting="CrashLoopBackOff", restarts=4, exit_code=137)),
        Phase.FAILED,
        "CrashLoopBackOff",
    ),
    "bad config": (WANTED, seen(raw_pod(ready=False, waiting="CreateContainerConfigError")), Phase.FAILED, "Misconfigured"),
    "quota fence": (
        WANTED,
        seen(
            deployment=raw_deployment(
                conditions=[
                    {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: x"}
                ]
            )
        ),
        Phase.LOADING,
        "WaitingForQuota",
    ),
    "stuck rollout": (
        WANTED,
        seen(
            LOADING,
            deployment=raw_deployment(
                conditions=[
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
                ]
            ),
        ),
        Phase.LOADING,
        "ProgressDeadlineExceeded",
    ),
    "idle": (replace(WANTED, replicas_min=0), seen(deployment=raw_deployment(replicas=0)), Phase.IDLE, "Suspended"),
    "lost cluster": (replace(WANTED, cluster_reachable=False), seen(raw_pod()), Phase.UNKNOWN, "ClusterUnreachable"),
    "conflict, still serving": (
        replace(WANTED, problem="x", problem_reason="FieldConflict"),
        seen(raw_pod()),
        Phase.DEGRADED,
        "FieldConflict",
    ),
    "conflict, nothing serves": (
        replace(WANTED, problem="x", problem_reason="FieldConflict"),
        seen(LOADING),
        Phase.FAILED,
        "FieldConflict",
    ),
    "operator missing": (replace(WANTED, operator_missing="FlexInfer"), None, Phase.ADMITTED, "Misconfigured"),
    "deleted by others": (WANTED, seen(raw_pod(), deployment=raw_deployment(deleting=True)), Phase.DEGRADED, "Terminating"),
    "deleting, draining": (replace(WANTED, wanted=False), seen(raw_pod(deleting=True)), Phase.DELETING, "Draining"),
    "deleting, held": (
        replace(WANTED, wanted=False),
        seen(deployment=raw_deployment(deleting=True, finalizers=("flexinfer.ai/model-cleanup",))),
        Phase.DELETING,
        "HeldByFinalizer",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_phase_and_its_reason(name: str) -> None:
    declared, sighting, phase, reason = CASES[name]
    report = phase_of(declared, sighting)
    assert (report.phase, report.reason) == (phase, reason)


def test_c21_a_deletion_that_hangs_names_the_finalizer() -> None:
    declared, sighting, *_ = CASES["deleting, held"]
    assert "held by flexinfer.ai/model-cleanup" in phase_of(declared, sighting).message


def test_c22_a_stuck_rollout_is_shown_with_its_reason() -> None:
    declared, sighting, *_ = CASES["stuck rollout"]
    assert "timed out" in phase_of(declared, sighting).message


def test_a_crash_says_how_often_and_what_the_last_exit_was() -> None:
    declared, sighting, *_ = CASES["crash loop"]
    message = phase_of(declared, sighting).message
    assert "4 times" in message
    assert "OOMKilled (exit code 137)" in message


@pytest.mark.parametrize(
    ("pod", "stage"),
    [
        (raw_pod(ready=False, scheduled=None, running=False), Substage.SCHEDULING),
        (raw_pod(ready=False, scheduled=False, running=False), Substage.SCHEDULING),
        (raw_pod(ready=False, running=False), Substage.PULLING_IMAGE),
        (raw_pod(ready=False), Substage.LOADING_WEIGHTS),
    ],
)
def test_substages(pod: dict[str, Any], stage: Substage) -> None:
    assert substage_of(pod_sighting(pod, generation_annotation="x")) is stage


pods = st.builds(
    raw_pod,
    st.sampled_from(["a", "b", "c"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
    ready=st.none() | st.booleans(),
    scheduled=st.none() | st.booleans(),
    waiting=st.sampled_from(["", "ContainerCreating", "ErrImagePull", "CrashLoopBackOff", "CreateContainerError"]),
    running=st.booleans(),
    deleting=st.booleans(),
)
deployments = st.none() | st.builds(
    raw_deployment,
    replicas=st.integers(0, 3),
    updated=st.integers(0, 3),
    observed=st.integers(1, 3),
    deleting=st.booleans(),
    finalizers=st.sampled_from([(), ("x/y",)]),
)
declarations = st.builds(
    Declaration,
    wanted=st.booleans(),
    replicas_min=st.integers(0, 3),
    replicas_max=st.just(3),
    applied=st.booleans(),
    cluster_reachable=st.none() | st.booleans(),
    problem=st.sampled_from(["", "broken"]),
)
sightings = st.builds(
    lambda items, deployment: Sighting(
        workload=deployment_sighting(deployment),
        pods=tuple(pod_sighting(pod, generation_annotation="x") for pod in items),
    ),
    st.lists(pods, max_size=3),
    deployments,
)


@given(declarations, st.none() | sightings)
def test_ready_is_never_a_lie(declared: Declaration, sighting: Sighting | None) -> None:
    report = phase_of(declared, sighting)
    if report.phase is Phase.READY:
        assert sighting is not None
        assert sighting.workload.settled
        assert declared.wanted
        assert declared.applied
        standing = [pod for pod in sighting.pods if pod.ready and not pod.deleting and not pod.ended]
        assert len(standing) >= (sighting.workload.replicas_wanted or 1)


@given(declarations, st.none() | sightings)
def test_a_lost_cluster_is_unknown_whatever_was_seen(declared: Declaration, sighting: Sighting | None) -> None:
    report = phase_of(replace(declared, cluster_reachable=False), sighting)
    assert report.phase is (Phase.ADMITTED if sighting is None and declared.wanted else Phase.UNKNOWN)
    assert report.reason == "ClusterUnreachable"
    assert report.message


@given(declarations, st.none() | sightings)
def test_every_state_of_the_contract_is_shown_apart(declared: Declaration, sighting: Sighting | None) -> None:
    report = phase_of(declared, sighting)
    facts = facts_of(
        declared,
        report,
        sighting,
        declared_at=AT,
        admitted=True,
        admitted_text="2 held",
        observed_at=AT if sighting else None,
    )
    assert [fact.name for fact in facts] == [
        "declared", "admitted", "cached", "loading", "ready", "idle", "serving", "draining", "degraded / failed",
        "deleting", "unknown",
    ]  # fmt: skip
    by_name = {fact.name: fact for fact in facts}
    for name in ("cached", "serving"):
        assert by_name[name].state is FactState.NOT_MEASURED
        assert by_name[name].text == "not measured here"
    if sighting is None:
        assert by_name["ready"].state is FactState.UNKNOWN
    assert (by_name["unknown"].state is FactState.YES) is (declared.cluster_reachable is False)
    assert all(fact.text for fact in facts)


@given(sightings)
def test_a_sighting_survives_its_json(sighting: Sighting) -> None:
    assert sighting_of(sighting.as_json()) == sighting


@given(
    st.recursive(
        st.none() | st.text(max_size=3) | st.integers(0, 3),
        lambda inner: st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        max_leaves=4,
    )
)
def test_parts_that_are_missing_are_no_error(value: Any) -> None:
    for part in ("metadata", "spec", "status"):
        assert pod_sighting({part: value if isinstance(value, dict) else {}}, generation_annotation="x").ready is False


def test_an_event_takes_the_newest_stamp_it_carries() -> None:
    event = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": "0/9 nodes",
        "firstTimestamp": "2026-11-01T00:00:00Z",
        "lastTimestamp": "2026-11-01T00:05:00Z",
        "count": 7,
        "involvedObject": {"kind": "Pod", "name": "p"},
    }
    seen_event = event_sighting(event)
    assert (seen_event.at, seen_event.count, seen_event.about) == ("2026-11-01T00:05:00Z", 7, "Pod p")


def test_a_pod_that_is_going_is_not_ready_even_when_its_condition_says_so() -> None:
    assert not pod_sighting(raw_pod(deleting=True), generation_annotation="x").ready
