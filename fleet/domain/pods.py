"""What the meter and the pages read of a raw Pod: parsed once, tolerant of any junk, nothing invented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from fleet.domain.devices import effective_request
from fleet.domain.findings import Finding
from fleet.domain.stamps import GENERATION, ID, KIND, PROJECT
from portal.kernel.gpu_time import instant_of

OVER = frozenset({"Succeeded", "Failed"})
"""Phases after which a pod holds no device (K1)."""

SERVING_PORT = "http"
"""Name of the container port that Slipway's engines serve on."""

_STATUS_KEYS = ("phase", "reason", "message", "startTime", "podIP", "nominatedNodeName")
_CONDITION_KEYS = ("type", "status", "reason", "message", "lastTransitionTime")
_CONTAINER_KEYS = ("name", "ready", "restartCount", "state", "lastState", "image")


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One version of a pod. ``version`` is its resourceVersion as a number, 0 when it is none.

    ``requests`` maps each extended resource to its effective request in whole devices (K3). ``status`` is the part of the
    raw status that rules and pages read, under its Kubernetes names. ``labelled_*`` are what the labels claim: they can be
    forged, and count only in the namespace of the project they name.
    """

    uid: str
    namespace: str
    name: str
    version: int
    node_name: str = ""
    labelled_kind: str = ""
    labelled_id: str = ""
    labelled_project: str = ""
    generation_stamp: str = ""
    requests: Mapping[str, int] = field(default_factory=dict)
    pod_ip: str = ""
    port: int | None = None
    created_at: datetime | None = None
    deletion_at: datetime | None = None
    status: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def phase(self) -> str:
        return text(self.status.get("phase"))[:16]

    @property
    def over(self) -> bool:
        """Succeeded or Failed: whatever the object's age, it holds nothing any more (C01)."""
        return self.phase in OVER

    @property
    def ready(self) -> bool:
        return condition(self.status, "Ready").get("status") == "True"


class Standing(StrEnum):
    """How far one pod has come, in the words that pages show (C02: bound is not running, and neither is waiting)."""

    WAITING = "waiting for capacity"
    GATED = "held back by a scheduling gate"
    STARTING = "bound, starting"
    IMAGE_PULL_FAILING = "bound, image pull failing"
    MISCONFIGURED = "bound, misconfigured"
    CRASHING = "bound, crashing"
    RUNNING = "running, not ready"
    READY = "ready"
    TERMINATING = "terminating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})
_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})


def text(value: object) -> str:
    """``value`` when it is a string, else ""."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """The mappings in ``value`` when it is a list; everything else is passed over."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, Mapping))


def version_of(metadata: Mapping[str, Any]) -> int:
    """metadata.resourceVersion as a number (Kubernetes compares them so); 0 when it is none."""
    raw = text(metadata.get("resourceVersion"))
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else 0


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of that type, or an empty mapping."""
    return next((item for item in mappings(status.get("conditions")) if item.get("type") == kind), {})


def containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Statuses of app containers only: init containers end before the pod runs."""
    yield from mappings(status.get("containerStatuses"))


def pod_facts(raw: Mapping[str, Any]) -> PodFacts | None:
    """Read a raw Pod; None when it has no uid (a bookmark, or no pod at all). Never raises on content."""
    metadata, spec, status = mapping(raw.get("metadata")), mapping(raw.get("spec")), mapping(raw.get("status"))
    uid = text(metadata.get("uid"))
    if not uid or len(uid) > 64:
        return None
    labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
    requests, findings = effective_request(spec)
    return PodFacts(
        uid=uid,
        namespace=text(metadata.get("namespace"))[:63],
        name=text(metadata.get("name"))[:253],
        version=version_of(metadata),
        node_name=text(spec.get("nodeName"))[:253],
        labelled_kind=text(labels.get(KIND))[:40],
        labelled_id=text(labels.get(ID))[:63],
        labelled_project=text(labels.get(PROJECT))[:63],
        generation_stamp=text(annotations.get(GENERATION))[:20],
        requests=requests,
        pod_ip=text(status.get("podIP"))[:45],
        port=_serving_port(spec),
        created_at=instant_of(metadata.get("creationTimestamp")),
        deletion_at=instant_of(metadata.get("deletionTimestamp")),
        status=_status_part(status),
        findings=findings,
    )


def _serving_port(spec: Mapping[str, Any]) -> int | None:
    for container in mappings(spec.get("containers")):
        for port in mappings(container.get("ports")):
            number = port.get("containerPort")
            if port.get("name") == SERVING_PORT and type(number) is int and 0 < number < 65536:
                return number
    return None


def _status_part(status: Mapping[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = _kept({key: value for key, value in status.items() if text(value)}, _STATUS_KEYS)
    part["conditions"] = [_kept(item, _CONDITION_KEYS) for item in mappings(status.get("conditions"))]
    for key in ("containerStatuses", "initContainerStatuses"):
        part[key] = [_kept(item, _CONTAINER_KEYS) for item in mappings(status.get(key))]
    return part


def _kept(item: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: clean(item[key], limit=1000) for key in keys if key in item}


def clean(value: Any, *, limit: int = 20_000) -> Any:
    """A JSON value that fits a row: texts cut at ``limit`` characters, and without NUL, which the database refuses."""
    if isinstance(value, str):
        return value[:limit].replace("\0", "")
    if isinstance(value, Mapping):
        return {str(key).replace("\0", ""): clean(inner, limit=limit) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner, limit=limit) for inner in value]
    return value


def standing(facts: PodFacts) -> Standing:
    """How far the pod has come, worst news first."""
    if facts.over:
        return Standing.SUCCEEDED if facts.phase == "Succeeded" else Standing.FAILED
    if facts.deletion_at is not None:
        return Standing.TERMINATING
    if not facts.node_name:
        gated = condition(facts.status, "PodScheduled").get("reason") == "SchedulingGated"
        return Standing.GATED if gated else Standing.WAITING
    if facts.ready:
        return Standing.READY
    waiting = {
        text(mapping(mapping(item.get("state")).get("waiting")).get("reason"))
        for key in ("containerStatuses", "initContainerStatuses")
        for item in mappings(facts.status.get(key))
    }
    for reasons, answer in ((_PULL, Standing.IMAGE_PULL_FAILING), (_CONFIG, Standing.MISCONFIGURED)):
        if waiting & reasons:
            return answer
    if "CrashLoopBackOff" in waiting:
        return Standing.CRASHING
    return (
        Standing.RUNNING
        if any(mapping(item.get("state")).get("running") for item in containers(facts.status))
        else Standing.STARTING
    )


def end_reason(facts: PodFacts, *, deleted: bool) -> str:
    """Why a pod that is over ended, as one short word for its usage row (C04: "preempted")."""
    causes = [
        text(facts.status.get("reason")),
        *(
            text(item.get("reason"))
            for item in mappings(facts.status.get("conditions"))
            if item.get("type") in ("DisruptionTarget", "TerminationTarget") and item.get("status") == "True"
        ),
    ]
    for cause in causes:
        if "preempt" in cause.lower():
            return "preempted"
    if any(cause in ("Evicted", "EvictionByEvictionAPI", "TerminationByKubelet") for cause in causes):
        return "evicted"
    if any(cause in ("DeletionByTaintManager", "DeletionByPodGC", "NodeLost") for cause in causes):
        return "node lost"
    if "DeadlineExceeded" in causes:
        return "deadline exceeded"
    terminated = {
        text(mapping(mapping(item.get("state")).get("terminated")).get("reason")) for item in containers(facts.status)
    }
    if "OOMKilled" in terminated:
        return "out of memory"
    if facts.over:
        return "completed" if facts.phase == "Succeeded" else "failed"
    return "deleted" if deleted else "absent"
