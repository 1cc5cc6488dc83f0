"""What inventory and health read of a raw Node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.domain.pods import condition, mapping, mappings, text, version_of
from portal.kernel.gpu_time import instant_of

_ANNOTATION_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One version of a node. ``ready`` None: the node controller does not know. Quantities as written."""

    uid: str
    name: str
    version: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    ready: bool | None = None
    unschedulable: bool = False
    heartbeat_at: datetime | None = None


def node_facts(raw: Mapping[str, Any]) -> NodeFacts | None:
    """Read a raw Node; None when it has no uid. Never raises on content."""
    metadata, spec, status = mapping(raw.get("metadata")), mapping(raw.get("spec")), mapping(raw.get("status"))
    uid = text(metadata.get("uid"))
    if not uid or len(uid) > 64:
        return None
    ready = condition(status, "Ready")
    return NodeFacts(
        uid=uid,
        name=text(metadata.get("name"))[:253],
        version=version_of(metadata),
        labels=_texts(metadata.get("labels")),
        annotations=_texts(metadata.get("annotations")),
        taints=tuple(_texts(taint) for taint in mappings(spec.get("taints"))),
        capacity=_texts(status.get("capacity")),
        allocatable=_texts(status.get("allocatable")),
        ready={"True": True, "False": False}.get(text(ready.get("status"))),
        unschedulable=spec.get("unschedulable") is True,
        heartbeat_at=instant_of(ready.get("lastHeartbeatTime")),
    )


def _texts(value: object) -> dict[str, str]:
    """String pairs only; a value that is too long for a row (a stored manifest, for example) is left out."""
    return {
        key: inner
        for key, inner in ((text(key), str(inner)) for key, inner in mapping(value).items())
        if key and len(inner) <= _ANNOTATION_LIMIT and "\0" not in inner
    }
