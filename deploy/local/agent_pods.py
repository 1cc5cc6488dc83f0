"""What the engine agent reads from a pod and writes into its status: pure functions on the API's JSON."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

READY = "slipway.local/engine-ready"
GONE = "slipway.local/engine-gone"
FINISH = "slipway.local/finish"
_ALIASES = ("--alias", "-a", "--served-model-name")


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The ``engines`` part of fleet.yaml."""

    limit: int
    serving: tuple[str, ...]
    batch: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> EnginePlan:
        engines = yaml.safe_load(path.read_text())["engines"]
        return cls(limit=int(engines["limit"]), serving=tuple(engines["serving"]), batch=tuple(engines["batch"]))


@dataclass(frozen=True, slots=True)
class Serve:
    """Run a server on the pod's address and ``port``, under the name ``alias``."""

    port: int
    alias: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Run a plain process until it is finished or deleted."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What this agent cannot run: a container state's reason and message."""

    reason: str
    message: str


Work = Serve | Batch | Refused


def work_of(pod: Json, plan: EnginePlan) -> Work:
    """What to run for ``pod``; a pod that cannot be run truthfully is refused with the reason a person can act on."""
    containers = pod["spec"]["containers"]
    if len(containers) != 1 or pod["spec"].get("initContainers"):
        return Refused("CreateContainerError", "the local engine agent runs pods of one container, without init containers")
    container = containers[0]
    repository = container["image"].split("@")[0]
    if any(fnmatch.fnmatchcase(repository, pattern) for pattern in plan.batch):
        return Batch()
    if not any(fnmatch.fnmatchcase(repository, pattern) for pattern in plan.serving):
        served = ", ".join(plan.serving)
        return Refused(
            "ErrImagePull", f"nothing on this machine serves the image {container['image']}; the local fleet has {served}"
        )
    port = next((port["containerPort"] for port in container.get("ports", []) if port.get("name") == "http"), None)
    if port is None:
        return Refused("CreateContainerError", "the container names no port 'http' for the local engine to listen on")
    return Serve(port=port, alias=_alias(container))


def _alias(container: Json) -> str:
    """The model name the command line asks for: llama.cpp's --alias, vLLM's --served-model-name; else ``model``."""
    words = [*container.get("command", []), *container.get("args", [])]
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _ALIASES:
            if equals:
                return str(value)
            if place + 1 < len(words):
                return str(words[place + 1])
    return "model"


def pre_stop_seconds(pod: Json) -> float:
    """How long the container's preStop hook sleeps: ``sleep``, or an exec of sleep, as kubelets run it; else 0."""
    hook = pod["spec"]["containers"][0].get("lifecycle", {}).get("preStop", {})
    if "sleep" in hook:
        return float(hook["sleep"]["seconds"])
    words = " ".join(hook.get("exec", {}).get("command", [])).split()
    if "sleep" in words and words.index("sleep") + 1 < len(words):
        seconds = words[words.index("sleep") + 1]
        return float(seconds) if seconds.replace(".", "", 1).isdigit() else 0.0
    return 0.0


def deadline_of(pod: Json) -> datetime | None:
    """When the pod's grace ends: its deletionTimestamp, which the API server sets to the request's time plus the grace."""
    stamp = pod["metadata"].get("deletionTimestamp")
    return datetime.fromisoformat(stamp) if stamp else None


def stamp(at: datetime) -> str:
    """As the API writes times: RFC 3339 in UTC, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_terminal(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def restart_count(pod: Json) -> int:
    return int(next((status.get("restartCount", 0) for status in pod.get("status", {}).get("containerStatuses", [])), 0))


def was_started(pod: Json) -> bool:
    """Did an earlier agent run this pod's container? Its process ended with that agent."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return any("running" in status.get("state", {}) for status in statuses)


def status_patch(
    pod: Json,
    *,
    state: Json,
    at: datetime,
    phase: str | None = None,
    restarts: int = 0,
    last_state: Json | None = None,
    reason: str = "ContainersNotReady",
) -> Json:
    """A strategic merge patch of the pod's status: its one container in ``state`` and not ready, as a kubelet writes it.

    A condition's lastTransitionTime moves only when its status does.
    """
    container = pod["spec"]["containers"][0]
    known = {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}
    conditions = []
    for kind in ("Ready", "ContainersReady"):
        before = known.get(kind, {})
        moved = stamp(at) if before.get("status") != "False" else before.get("lastTransitionTime", stamp(at))
        message = f"containers with unready status: [{container['name']}]" if reason == "ContainersNotReady" else ""
        conditions.append(
            {"type": kind, "status": "False", "reason": reason, "message": message, "lastTransitionTime": moved}
        )
    status: Json = {
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"] if "@" in container["image"] and "waiting" not in state else "",
                "ready": False,
                "started": "running" in state,
                "restartCount": restarts,
                "state": {"$patch": "replace", **state},
                **({"lastState": {"$patch": "replace", **last_state}} if last_state is not None else {}),
            }
        ],
    }
    if phase is not None:
        status["phase"] = phase
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
