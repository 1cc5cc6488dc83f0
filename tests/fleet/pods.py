"""Raw pods, as the API server writes them, for the meter's tests."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

from fleet.domain.pods import PodFacts, pod_facts

_number = count(1)
DAY = datetime(2026, 11, 3, tzinfo=UTC)


def clock(text: str) -> datetime:
    """``"10:00:05"`` on the tests' day, in UTC."""
    return datetime.fromisoformat(f"2026-11-03T{text}+00:00")


def stamp(at: datetime | str | None) -> str | None:
    """As the API server writes it; a text goes through as it is."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(at, datetime) else at


def raw_pod(
    uid: str = "",
    *,
    version: int = 10,
    devices: int = 1,
    resource: str = "nvidia.com/gpu",
    node: str = "gpu-1",
    namespace: str = "lab",
    phase: str = "Running",
    scheduled: Any = "unset",
    started: Any = "unset",
    running: Any = None,
    finished: Any = "unset",
    ready: str = "",
    ready_moved: Any = None,
    waiting: str = "",
    reason: str = "",
    labels: dict[str, str] | None = None,
    conditions: tuple[dict[str, Any], ...] = (),
    deletion: Any = None,
) -> dict[str, Any]:
    """One version of a pod with one container. ``"unset"`` leaves a stamp out; None writes null."""
    uid = uid or f"uid-{next(_number)}"
    found: list[dict[str, Any]] = list(conditions)
    if scheduled != "unset":
        found.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(scheduled)})
    elif not node:
        found.append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"})
    if ready:
        found.append({"type": "Ready", "status": ready, "lastTransitionTime": stamp(ready_moved)})
    state: dict[str, Any] = {}
    if finished != "unset":
        state = {"terminated": {"exitCode": 0, "startedAt": stamp(running), "finishedAt": stamp(finished)}}
    elif waiting:
        state = {"waiting": {"reason": waiting}}
    elif running is not None:
        state = {"running": {"startedAt": stamp(running)}}
    status: dict[str, Any] = {"phase": phase, "conditions": found}
    if state:
        status["containerStatuses"] = [{"name": "engine", "state": state}]
    if started != "unset":
        status["startTime"] = stamp(started)
    if reason:
        status["reason"] = reason
    metadata: dict[str, Any] = {
        "uid": uid,
        "name": f"pod-{uid}",
        "namespace": namespace,
        "resourceVersion": str(version),
        "labels": labels or {},
    }
    if deletion is not None:
        metadata["deletionTimestamp"] = stamp(deletion)
    resources = {"limits": {resource: str(devices)}} if devices else {}
    spec: dict[str, Any] = {"containers": [{"name": "engine", "resources": resources}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": metadata, "spec": spec, "status": status}


def facts(uid: str = "", **fields: Any) -> PodFacts:
    """``raw_pod`` as the observer keeps it."""
    found = pod_facts(raw_pod(uid, **fields))
    assert found is not None
    return found
