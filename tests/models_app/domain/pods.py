"""Raw pods and Deployments as an API server writes them, for the tests of states."""

from __future__ import annotations

from typing import Any


def raw_pod(
    uid: str = "u1",
    *,
    phase: str = "Running",
    ready: bool | None = True,
    scheduled: bool | None = True,
    unschedulable: str = "",
    waiting: str = "",
    running: bool = True,
    deleting: bool = False,
    restarts: int = 0,
    exit_code: int = 0,
    ip: str = "127.64.0.9",
) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = []
    if scheduled is not None:
        condition = {"type": "PodScheduled", "status": "True" if scheduled else "False"}
        if unschedulable:
            condition |= {"reason": "Unschedulable", "message": unschedulable}
        conditions.append(condition)
    if ready is not None:
        conditions.append({"type": "Ready", "status": "True" if ready else "False"})
    state: dict[str, Any] = {"running": {"startedAt": "2026-11-01T00:00:00Z"}} if running else {}
    if waiting:
        state = {"waiting": {"reason": waiting, "message": f"{waiting} message"}}
    container: dict[str, Any] = {"name": "server", "state": state, "restartCount": restarts}
    if exit_code:
        container["lastState"] = {"terminated": {"exitCode": exit_code, "reason": "OOMKilled"}}
    metadata: dict[str, Any] = {"uid": uid, "name": f"pod-{uid}", "creationTimestamp": "2026-11-01T00:00:00Z"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-01T01:00:00Z"
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": "n1" if scheduled else "",
            "containers": [{"name": "server", "ports": [{"name": "http", "containerPort": 8080}]}],
        },
        "status": {
            "phase": phase,
            "podIP": ip,
            "conditions": conditions,
            "containerStatuses": [container] if state else [],
        },
    }


def raw_deployment(
    *,
    replicas: int = 1,
    updated: int | None = None,
    generation: int = 3,
    observed: int | None = None,
    conditions: list[dict[str, Any]] | None = None,
    deleting: bool = False,
    finalizers: tuple[str, ...] = (),
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": "d1", "generation": generation, "finalizers": list(finalizers)}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-01T01:00:00Z"
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": generation if observed is None else observed,
            "replicas": replicas,
            "updatedReplicas": replicas if updated is None else updated,
            "conditions": conditions or [],
        },
    }
