"""GPU time from pods (contract §5, K1–K4, K7, K9): when a pod's hold on its devices starts and ends, and how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from fleet.domain.evidence import Evidence, GoneBasis
from fleet.domain.findings import Finding, FindingKind
from fleet.domain.pods import condition, containers, end_reason, mapping, mappings
from portal.kernel.gpu_time import EARLIEST_YEAR, LATEST_YEAR, elapsed_us, instant_of

CLOCK_SLACK = timedelta(days=1)
"""An end stamp further ahead of the first sight of that end is a broken clock (K7)."""


class StartBasis(StrEnum):
    """What proves the start of an interval (K1)."""

    POD_SCHEDULED = "pod_scheduled"
    START_TIME = "start_time"


class EndBasis(StrEnum):
    """What proves the end of an interval (K1), strongest first."""

    CONTAINER_FINISHED = "container_finished"
    READY_FALSE = "ready_false"
    DELETED_EVENT = "deleted_event"
    LAST_EVIDENCE = "last_evidence"


@dataclass(frozen=True, slots=True)
class Span:
    """A pod's hold on its devices, [start, end); ``end`` None while it lasts.

    ``running_at`` is the first container start (second column, never billed); ``uncertain_us`` the time after the last
    evidence in which it may have gone on (K9).
    """

    start: datetime
    start_basis: StartBasis
    running_at: datetime | None
    end: datetime | None = None
    end_basis: EndBasis | None = None
    end_reason: str = ""
    uncertain_us: int = 0


@dataclass(frozen=True, slots=True)
class Metered:
    """``span`` is None for a pod that never got onto a node."""

    span: Span | None
    findings: tuple[Finding, ...] = ()


def pod_span(evidence: Evidence) -> Metered:
    """The interval that this evidence proves. The watch, the full list and a replay all decide by this one function."""
    findings: list[Finding] = [*evidence.facts.findings]
    begun = _start(evidence, findings)
    if begun is None:
        return Metered(None, _once(findings))
    start, basis = begun
    end, end_basis, uncertain = _end(evidence, start, findings)
    reason = end_reason(evidence.facts, deleted=evidence.gone_basis is GoneBasis.DELETED_EVENT) if end else ""
    return Metered(
        Span(
            start=start,
            start_basis=basis,
            running_at=evidence.running_at,
            end=end,
            end_basis=end_basis,
            end_reason=reason,
            uncertain_us=uncertain,
        ),
        _once(findings),
    )


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """The first of each kind: one row per pod and kind."""
    kept: dict[FindingKind, Finding] = {}
    for finding in findings:
        kept.setdefault(finding.kind, finding)
    return tuple(kept.values())


def _stamp(holder: Mapping[str, Any], key: str, where: str, findings: list[Finding]) -> datetime | None:
    """A stamp of the API server, or None and a finding (K7)."""
    raw = holder.get(key)
    if raw is None:
        findings.append(Finding(FindingKind.NULL_STAMP, f"{where}: null"))
        return None
    stamp = instant_of(raw)
    if stamp is None:
        findings.append(Finding(FindingKind.UNREADABLE_STAMP, f"{where}: {raw!r}"[:200]))
        return None
    if not EARLIEST_YEAR <= stamp.year < LATEST_YEAR:
        findings.append(Finding(FindingKind.YEAR_OUT_OF_RANGE, f"{where}: {raw}"))
        return None
    return stamp


def _start(evidence: Evidence, findings: list[Finding]) -> tuple[datetime, StartBasis] | None:
    """K1: PodScheduled=True, else status.startTime; an unbound pod never starts (C02)."""
    facts = evidence.facts
    scheduled = condition(facts.status, "PodScheduled")
    if scheduled.get("status") == "True":
        stamp = _stamp(scheduled, "lastTransitionTime", "PodScheduled.lastTransitionTime", findings)
        if stamp is not None:
            return stamp, StartBasis.POD_SCHEDULED
    if "startTime" in facts.status:
        stamp = _stamp(facts.status, "startTime", "status.startTime", findings)
        if stamp is not None and facts.node_name:
            return stamp, StartBasis.START_TIME
    if facts.node_name and (facts.over or evidence.gone_at is not None):
        findings.append(Finding(FindingKind.NO_START, "bound to a node, with no valid stamp of when"))
    return None


def _end(evidence: Evidence, start: datetime, findings: list[Finding]) -> tuple[datetime | None, EndBasis | None, int]:
    """(end, basis, uncertain µs); (None, None, 0) while the pod holds its devices."""
    if evidence.facts.over:
        return _terminal_end(evidence, start, findings)
    if evidence.gone_at is None:
        return None, None, 0
    if evidence.gone_basis is GoneBasis.DELETED_EVENT:
        return _not_before(start, evidence.gone_at, findings), EndBasis.DELETED_EVENT, 0
    end = max(start, min(evidence.seen_at, evidence.gone_at))
    return end, EndBasis.LAST_EVIDENCE, max(0, elapsed_us(end, evidence.gone_at))


def _terminal_end(evidence: Evidence, start: datetime, findings: list[Finding]) -> tuple[datetime, EndBasis, int]:
    seen_over = evidence.over_at or evidence.seen_at
    finished = _valid(_finished(evidence, findings), start, seen_over, "finishedAt", findings)
    if finished:
        return max(finished), EndBasis.CONTAINER_FINISHED, 0
    unready = _valid(_unready(evidence), start, seen_over, "Ready.lastTransitionTime", findings)
    if unready:
        return max(unready), EndBasis.READY_FALSE, 0
    if evidence.gone_basis is GoneBasis.DELETED_EVENT and evidence.gone_at is not None and evidence.gone_at <= seen_over:
        return _not_before(start, evidence.gone_at, findings), EndBasis.DELETED_EVENT, 0
    findings.append(Finding(FindingKind.NO_END, f"{evidence.facts.phase}, with no valid stamp of when"))
    end = max(start, min(evidence.active_at or start, seen_over))
    return end, EndBasis.LAST_EVIDENCE, max(0, elapsed_us(end, seen_over))


def _not_before(start: datetime, end: datetime, findings: list[Finding]) -> datetime:
    if end >= start:
        return end
    findings.append(Finding(FindingKind.END_BEFORE_START, f"ended {end.isoformat()}, started {start.isoformat()}"))
    return start


def _finished(evidence: Evidence, findings: list[Finding]) -> Iterator[datetime]:
    for container in containers(evidence.facts.status):
        terminated = mapping(mapping(container.get("state")).get("terminated"))
        if terminated:
            stamp = _stamp(terminated, "finishedAt", f"container {container.get('name')}: finishedAt", findings)
            if stamp is not None:
                yield stamp


def _unready(evidence: Evidence) -> Iterator[datetime]:
    """Moves of Ready or ContainersReady to False. One that stands since before anything ran was never a move, and proves
    no end: a pod whose image could not be pulled is False from the start."""
    for item in mappings(evidence.facts.status.get("conditions")):
        if item.get("type") in ("Ready", "ContainersReady") and item.get("status") == "False":
            stamp = instant_of(item.get("lastTransitionTime"))
            if stamp is not None and evidence.running_at is not None and stamp >= evidence.running_at:
                yield stamp


def _valid(
    stamps: Iterator[datetime], start: datetime, seen_over: datetime, where: str, findings: list[Finding]
) -> list[datetime]:
    kept = []
    for stamp in stamps:
        if stamp < start:
            findings.append(
                Finding(FindingKind.END_BEFORE_START, f"{where} {stamp.isoformat()}, started {start.isoformat()}")
            )
        elif stamp > seen_over + CLOCK_SLACK:
            findings.append(Finding(FindingKind.END_IN_FUTURE, f"{where} {stamp.isoformat()}, seen {seen_over.isoformat()}"))
        else:
            kept.append(stamp)
    return kept
