"""What is known of one pod uid, merged from sights in any order (contract K2, K8).

Each merge is a join: the newest resourceVersion gives the object, the earliest sight of an end and the latest proof of life
win. So a replay, a duplicate or a reordered delivery leaves the same evidence, and the interval is a function of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from fleet.domain.pods import PodFacts, containers, mapping
from portal.kernel.gpu_time import EARLIEST_YEAR, LATEST_YEAR, instant_of


class GoneBasis(StrEnum):
    """How it was learnt that a pod is gone; a seen deletion is stronger than an absence."""

    DELETED_EVENT = "deleted_event"
    ABSENCE = "absence"


@dataclass(frozen=True, slots=True)
class Evidence:
    """``seen_at`` is the last proof that the pod was there, ``seen_version`` the newest version that proved it (its own, or
    of the list it stood in). ``active_at``: last seen bound and not over. ``over_at``: first seen over. ``gone_version``:
    the version by which it was gone.
    """

    facts: PodFacts
    seen_at: datetime
    seen_version: int
    active_at: datetime | None = None
    over_at: datetime | None = None
    running_at: datetime | None = None
    gone_at: datetime | None = None
    gone_basis: GoneBasis | None = None
    gone_version: int = 0


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one and other else one or other


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(one, other) if one and other else one or other


def running_since(facts: PodFacts) -> datetime | None:
    """The first start of any app container that the status still tells, restarts included."""
    stamps = []
    for container in containers(facts.status):
        for key in ("state", "lastState"):
            for inner in ("running", "terminated"):
                stamp = instant_of(mapping(mapping(container.get(key)).get(inner)).get("startedAt"))
                if stamp is not None and EARLIEST_YEAR <= stamp.year < LATEST_YEAR:
                    stamps.append(stamp)
    return min(stamps, default=None)


def seen(old: Evidence | None, facts: PodFacts, *, at: datetime, version: int = 0) -> Evidence:
    """The pod was there at ``at``, as of ``version`` of the list it stood in (0: as of its own version)."""
    proven = max(facts.version, version)
    active = None if facts.over else at
    over = at if facts.over else None
    if old is None:
        return Evidence(
            facts=facts,
            seen_at=at,
            seen_version=proven,
            active_at=active,
            over_at=over,
            running_at=running_since(facts),
        )
    merged = replace(
        old,
        facts=facts if facts.version > old.facts.version else old.facts,
        running_at=_earlier(old.running_at, running_since(facts)),
        over_at=_earlier(old.over_at, over),
    )
    if old.gone_at is not None:
        back = old.gone_basis is GoneBasis.ABSENCE and proven > old.gone_version
        if not back and at > old.gone_at:
            return merged  # a replay of what was true before it went: no proof that it is there now
        if back:
            merged = replace(merged, gone_at=None, gone_basis=None, gone_version=0)
    return replace(
        merged,
        seen_at=max(old.seen_at, at),
        seen_version=max(old.seen_version, proven),
        active_at=_later(old.active_at, active),
    )


def deleted(old: Evidence | None, facts: PodFacts, *, at: datetime) -> Evidence:
    """A live DELETED event with the pod's last version arrived at ``at``; a repeat of it moves nothing."""
    before = old
    if old is not None and old.gone_basis is GoneBasis.ABSENCE:
        before = replace(old, gone_at=None, gone_basis=None, gone_version=0)
    merged = seen(before, facts, at=at)
    return replace(
        merged,
        gone_at=_earlier(before.gone_at if before else None, at),
        gone_basis=GoneBasis.DELETED_EVENT,
        gone_version=max(before.gone_version if before else 0, facts.version),
    )


def absent(old: Evidence, *, version: int, at: datetime, covered_at: datetime | None = None) -> Evidence:
    """A list that finished at ``at``, as of ``version``, did not hold the pod (K1, C18: never call this for half a list).

    ``covered_at``: when a watch last proved that it was current and had told of no deletion.
    """
    if old.seen_version > version or old.gone_basis is GoneBasis.DELETED_EVENT:
        return old
    gone_at = _earlier(old.gone_at, at)
    proof = covered_at if covered_at is not None and gone_at is not None and covered_at <= gone_at else None
    return replace(
        old,
        seen_at=_later(old.seen_at, proof) or old.seen_at,
        active_at=old.active_at if old.facts.over else _later(old.active_at, proof),
        gone_at=gone_at,
        gone_basis=GoneBasis.ABSENCE,
        gone_version=max(old.gone_version, version),
    )
