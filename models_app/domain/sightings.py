"""What one pass saw of a deployment in its cluster, as plain values; kept on the row and read by pages and routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fleet.domain.pods import clean

_ENDED_PHASES = frozenset({"Succeeded", "Failed"})
_PULL_FAILURES = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_CONFIG_FAILURES = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})


@dataclass(frozen=True, slots=True)
class PodSighting:
    """One pod. ``scheduled`` is None while the scheduler has said nothing. ``waiting`` is the first container's reason.

    ``ended``: in a terminal phase, so that it holds no device any more (K1). ``revision``: the stamped generation.
    """

    uid: str
    name: str
    phase: str
    ready: bool = False
    ended: bool = False
    deleting: bool = False
    scheduled: bool | None = None
    scheduling_reason: str = ""
    scheduling_message: str = ""
    waiting: str = ""
    waiting_message: str = ""
    last_exit: str = ""
    restarts: int = 0
    initializing: bool = False
    running: bool = False
    node: str = ""
    ip: str = ""
    port: int | None = None
    generation: str = ""
    created_at: str = ""

    @property
    def pull_failing(self) -> bool:
        return self.waiting in _PULL_FAILURES

    @property
    def misconfigured(self) -> bool:
        return self.waiting in _CONFIG_FAILURES

    @property
    def crashing(self) -> bool:
        return self.waiting == "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class WorkloadSighting:
    """The engine's main object. ``present`` False: proven absent. Counts as its status says; None where it says nothing."""

    present: bool
    uid: str = ""
    generation: int = 0
    observed_generation: int = 0
    replicas_wanted: int | None = None
    replicas: int | None = None
    updated: int | None = None
    ready: int | None = None
    available: int | None = None
    deleting_since: str = ""
    finalizers: tuple[str, ...] = ()
    failure_reason: str = ""
    failure_message: str = ""
    stuck_message: str = ""

    @property
    def settled(self) -> bool:
        """Its controller has seen the newest spec, so its counts are about that one."""
        return self.present and self.observed_generation >= self.generation


@dataclass(frozen=True, slots=True)
class EventSighting:
    """A Kubernetes Event about one of the deployment's objects; ``at`` is ISO 8601 in UTC, "" when it carries none."""

    at: str
    type: str
    reason: str
    message: str
    about: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Sighting:
    """Everything a pass saw; ``complete`` is False when any of its reads failed (then absence proves nothing, D3)."""

    workload: WorkloadSighting
    pods: tuple[PodSighting, ...] = ()
    events: tuple[EventSighting, ...] = ()
    complete: bool = True

    @property
    def live_pods(self) -> tuple[PodSighting, ...]:
        """Pods that may hold devices: not proven ended."""
        return tuple(pod for pod in self.pods if not pod.ended)

    def as_json(self) -> dict[str, Any]:
        """The JSON kept in ``Deployment.observed``."""
        return {
            "workload": asdict(self.workload),
            "pods": [asdict(pod) for pod in self.pods],
            "events": [asdict(event) for event in self.events],
            "complete": self.complete,
        }


def sighting_of(observed: Mapping[str, Any]) -> Sighting | None:
    """The sighting kept as JSON; None when no pass has seen the cluster yet."""
    if "workload" not in observed:
        return None
    workload = {**observed["workload"], "finalizers": tuple(observed["workload"].get("finalizers", ()))}
    return Sighting(
        workload=WorkloadSighting(**workload),
        pods=tuple(PodSighting(**pod) for pod in observed.get("pods", ())),
        events=tuple(EventSighting(**event) for event in observed.get("events", ())),
        complete=bool(observed.get("complete", True)),
    )


def pod_sighting(pod: Mapping[str, Any], *, generation_annotation: str) -> PodSighting:
    """A pod as the API server wrote it (raw JSON), reduced to what the states need. Absent fields are no error."""
    pod = clean(pod)
    metadata, spec, status = _part(pod, "metadata"), _part(pod, "spec"), _part(pod, "status")
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled")
    containers: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or ()
    inits: Sequence[Mapping[str, Any]] = status.get("initContainerStatuses") or ()
    waiting = next((_part(_part(item, "state"), "waiting") for item in [*inits, *containers] if _waiting(item)), {})
    exits = [
        _part(_part(item, "lastState"), "terminated") or _part(_part(item, "state"), "terminated") for item in containers
    ]
    phase = str(status.get("phase", ""))
    return PodSighting(
        uid=str(metadata.get("uid", "")),
        name=str(metadata.get("name", "")),
        phase=phase,
        ready=_true(conditions.get("Ready")) and "deletionTimestamp" not in metadata,
        ended=phase in _ENDED_PHASES,
        deleting="deletionTimestamp" in metadata,
        scheduled=None if scheduled is None else _true(scheduled),
        scheduling_reason=str((scheduled or {}).get("reason", "")),
        scheduling_message=str((scheduled or {}).get("message", "")),
        waiting=str(waiting.get("reason", "")),
        waiting_message=str(waiting.get("message", "")),
        last_exit=next((_exit_text(item) for item in exits if item and item.get("exitCode", 0) != 0), ""),
        restarts=sum(int(item.get("restartCount", 0)) for item in containers),
        initializing=any("running" in _part(item, "state") for item in inits),
        running=any("running" in _part(item, "state") for item in containers),
        node=str(spec.get("nodeName", "")),
        ip=str(status.get("podIP", "")),
        port=_http_port(spec),
        generation=str(_part(metadata, "annotations").get(generation_annotation, "")),
        created_at=str(metadata.get("creationTimestamp", "")),
    )


def deployment_sighting(live: Mapping[str, Any] | None) -> WorkloadSighting:
    """An ``apps/v1`` Deployment as the API server wrote it; None is a proven absence."""
    if live is None:
        return WorkloadSighting(present=False)
    live = clean(live)
    metadata, spec, status = _part(live, "metadata"), _part(live, "spec"), _part(live, "status")
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    failure = conditions.get("ReplicaFailure", {})
    progressing = conditions.get("Progressing", {})
    stuck = progressing.get("status") == "False" and progressing.get("reason") == "ProgressDeadlineExceeded"
    return WorkloadSighting(
        present=True,
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        observed_generation=int(status.get("observedGeneration", 0)),
        replicas_wanted=spec.get("replicas"),
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        deleting_since=str(metadata.get("deletionTimestamp", "")),
        finalizers=tuple(metadata.get("finalizers") or ()),
        failure_reason=str(failure.get("reason", "")) if failure.get("status") == "True" else "",
        failure_message=str(failure.get("message", "")) if failure.get("status") == "True" else "",
        stuck_message=str(progressing.get("message", "")) if stuck else "",
    )


def event_sighting(event: Mapping[str, Any]) -> EventSighting:
    """A core/v1 Event as the API server wrote it; what a probe printed may hold anything."""
    event = clean(event)
    about = _part(event, "involvedObject")
    series = _part(event, "series")
    at = (
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    )
    return EventSighting(
        at=str(at or ""),
        type=str(event.get("type", "")),
        reason=str(event.get("reason", "")),
        message=str(event.get("message", ""))[:1000],
        about=f"{about.get('kind', '')} {about.get('name', '')}".strip(),
        count=int(series.get("count") or event.get("count") or 1),
    )


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _true(condition: Mapping[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _waiting(container: Mapping[str, Any]) -> bool:
    return bool(_part(_part(container, "state"), "waiting").get("reason"))


def _exit_text(terminated: Mapping[str, Any]) -> str:
    code = terminated.get("exitCode", 0)
    reason = terminated.get("reason", "")
    return f"{reason} (exit code {code})" if reason else f"exit code {code}"


def _http_port(spec: Mapping[str, Any]) -> int | None:
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == "http":
                return int(port["containerPort"])
    return None
