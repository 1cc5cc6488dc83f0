"""What the watchers of one cluster tell its writer, in order, with the instant at which they learnt it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from fleet.domain.nodes import NodeFacts, node_facts
from fleet.domain.objects import ObjectFacts, object_facts
from fleet.domain.pods import PodFacts, pod_facts
from fleet.observer.kinds import NODES, PODS, WatchedKind

Facts: TypeAlias = PodFacts | NodeFacts | ObjectFacts


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of all objects of the kind finished."""

    kind: WatchedKind
    facts: list[Facts]
    version: int
    asked_at: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a watch."""

    kind: WatchedKind
    facts: Facts
    deleted: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Current:
    """The watch of the kind proved that it had told everything up to ``at``: a bookmark, or its end in good order."""

    kind: WatchedKind
    at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The cluster answered a plain question; sometimes the answer also says what it is."""

    at: datetime
    version: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """Listing or watching the kind failed; nothing is known since. ``kind`` None: the plain question failed."""

    kind: WatchedKind | None
    error: str
    at: datetime


Message: TypeAlias = Listed | Seen | Current | Answered | Lost


def facts_of(kind: WatchedKind, raw: dict[str, Any]) -> Facts | None:
    """The small part of an object that is kept; None for what is no object (C17). The raw one can be dropped at once."""
    if kind == PODS:
        return pod_facts(raw)
    if kind == NODES:
        return node_facts(raw)
    return object_facts(raw, api_version=kind.api_version, kind=kind.kind)
