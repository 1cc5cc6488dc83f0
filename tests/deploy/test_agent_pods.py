"""What the agent reads from pods and writes to them, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from deploy.local.agent_pods import (
    Batch,
    EnginePlan,
    Refused,
    Serve,
    deadline_of,
    pre_stop_seconds,
    status_patch,
    work_of,
)
from deploy.local.fleet_nodes import FLEET_FILE

PLAN = EnginePlan(
    limit=2, serving=("registry.invalid/*llamacpp*", "registry.invalid/*vllm*"), batch=("registry.invalid/batch",)
)
AT = datetime(2026, 12, 1, 3, 0, 5, 900_000, tzinfo=UTC)


def a_pod(**container: Any) -> dict[str, Any]:
    one = {
        "name": "server",
        "image": "registry.invalid/llamacpp-cuda@sha256:0",
        "ports": [{"name": "http", "containerPort": 8080}],
    }
    one.update(container)
    return {"metadata": {"uid": "u"}, "spec": {"containers": [one]}, "status": {}}


@pytest.mark.parametrize(
    ("words", "alias"),
    [
        ({"args": ["--alias", "a"]}, "a"),
        ({"args": ["--model", "/m", "--alias=b"]}, "b"),
        ({"command": ["llama-server", "-a", "c"]}, "c"),
        ({"command": ["vllm", "serve"], "args": ["--served-model-name=d", "--port", "8000"]}, "d"),
        ({"args": ["--served-model-name", "e"]}, "e"),
        ({"args": ["--alias"]}, "model"),
        ({}, "model"),
    ],
)
def test_the_model_name_comes_from_the_command_line(words: dict[str, list[str]], alias: str) -> None:
    assert work_of(a_pod(**words), PLAN) == Serve(port=8080, alias=alias)


def test_it_listens_on_the_port_named_http() -> None:
    ports = [{"name": "metrics", "containerPort": 9}, {"name": "http", "containerPort": 8000}]
    assert work_of(a_pod(image="registry.invalid/team/vllm:1@sha256:0", ports=ports), PLAN) == Serve(
        port=8000, alias="model"
    )


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        ({"image": "nginx"}, "ErrImagePull", "nothing on this machine serves the image nginx"),
        ({"image": "registry.invalid/other@sha256:0"}, "ErrImagePull", "registry.invalid/other"),
        ({"ports": []}, "CreateContainerError", "no port 'http'"),
    ],
)
def test_what_it_cannot_run_is_refused_with_a_reason(change: dict[str, Any], reason: str, says: str) -> None:
    work = work_of(a_pod(**change), PLAN)
    assert isinstance(work, Refused)
    assert work.reason == reason
    assert says in work.message


def test_pods_of_several_containers_are_refused_rather_than_half_run() -> None:
    two = a_pod()
    two["spec"]["containers"].append({"name": "second", "image": "registry.invalid/vllm"})
    assert isinstance(work_of(two, PLAN), Refused)
    first = a_pod()
    first["spec"]["initContainers"] = [{"name": "fetch", "image": "registry.invalid/vllm"}]
    assert isinstance(work_of(first, PLAN), Refused)


def test_a_batch_image_needs_no_port() -> None:
    assert work_of(a_pod(image="registry.invalid/batch@sha256:0", ports=[]), PLAN) == Batch()


@pytest.mark.parametrize(
    ("lifecycle", "seconds"),
    [
        ({}, 0),
        ({"preStop": {"sleep": {"seconds": 5}}}, 5),
        ({"preStop": {"exec": {"command": ["sleep", "7"]}}}, 7),
        ({"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 2.5"]}}}, 2.5),
        ({"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep $LONG"]}}}, 0),
        ({"preStop": {"exec": {"command": ["touch", "/tmp/bye"]}}}, 0),
        ({"postStart": {"sleep": {"seconds": 5}}}, 0),
    ],
)
def test_pre_stop_sleeps(lifecycle: dict[str, Any], seconds: float) -> None:
    assert pre_stop_seconds(a_pod(lifecycle=lifecycle)) == seconds


def test_the_grace_ends_at_the_deletion_timestamp() -> None:
    found = a_pod()
    assert deadline_of(found) is None
    found["metadata"]["deletionTimestamp"] = "2026-12-01T03:00:35Z"
    assert deadline_of(found) == datetime(2026, 12, 1, 3, 0, 35, tzinfo=UTC)


def test_a_condition_moves_only_when_its_status_does() -> None:
    found = a_pod()
    earlier = "2026-12-01T02:00:00Z"
    found["status"]["conditions"] = [
        {"type": "Ready", "status": "True", "lastTransitionTime": earlier},
        {"type": "ContainersReady", "status": "False", "lastTransitionTime": earlier},
    ]
    patch = status_patch(found, state={"running": {}}, at=AT)
    moved = {one["type"]: (one["status"], one["lastTransitionTime"]) for one in patch["status"]["conditions"]}
    assert moved == {"Ready": ("False", "2026-12-01T03:00:05Z"), "ContainersReady": ("False", earlier)}


def test_a_state_replaces_the_one_before() -> None:
    patch = status_patch(a_pod(), state={"running": {"startedAt": "x"}}, at=AT, phase="Running", restarts=3)
    container = patch["status"]["containerStatuses"][0]
    assert container["state"] == {"$patch": "replace", "running": {"startedAt": "x"}}
    assert (container["restartCount"], container["ready"], patch["status"]["phase"]) == (3, False, "Running")
    assert patch["metadata"]["uid"] == "u", "a pod of the same name but another uid must not be written"


def test_fleet_yaml_says_what_is_served() -> None:
    plan = EnginePlan.read(FLEET_FILE)
    assert plan.limit <= 16
    assert work_of(a_pod(), plan) == Serve(port=8080, alias="model")
