"""Every state of contract §2 shown apart, each with the age of its observation; unobserved ones say so."""

from __future__ import annotations

from datetime import datetime

from models_app.domain.phases import (
    NOT_MEASURED_TEXT,
    Declaration,
    Fact,
    FactState,
    Phase,
    PhaseReport,
    Substage,
    substage_of,
)
from models_app.domain.sightings import Sighting


def facts_of(
    declared: Declaration,
    report: PhaseReport,
    seen: Sighting | None,
    *,
    declared_at: datetime,
    admitted_text: str,
    admitted: bool,
    observed_at: datetime | None,
) -> tuple[Fact, ...]:
    """The states in the order of contract §2. ``observed_at`` is the end of the pass that gave ``seen``; ages come from it.

    An unreachable cluster keeps the last values and says from when they are: nothing turns into "gone" (D3).
    """
    lost = declared.cluster_reachable is False
    known = seen is not None
    unknown = FactState.UNKNOWN

    def fact(name: str, yes: bool, text: str) -> Fact:
        state = FactState.YES if yes else FactState.NO
        return Fact(name, state if known else unknown, text if known else "not observed yet", observed_at)

    pods = seen.pods if seen else ()
    live = [pod for pod in pods if not pod.ended and not pod.deleting]
    ready = sum(pod.ready for pod in live)
    loading = [substage_of(pod) for pod in live if not pod.ready]
    draining = [pod for pod in pods if pod.deleting and not pod.ended]
    wanted = declared.replicas_min
    if seen is not None and seen.workload.replicas_wanted is not None:
        wanted = seen.workload.replicas_wanted
    failed = report.phase in (Phase.FAILED, Phase.DEGRADED)
    return (
        Fact("declared", FactState.YES if declared.wanted else FactState.NO, _declared_text(declared), declared_at),
        Fact("admitted", FactState.YES if admitted else FactState.NO, admitted_text, declared_at),
        Fact("cached", FactState.NOT_MEASURED, NOT_MEASURED_TEXT),
        fact("loading", bool(loading), _loading_text(loading)),
        fact("ready", wanted > 0 and ready >= wanted, f"{ready} of {wanted}"),
        fact("idle", report.phase is Phase.IDLE, "scaled to zero, wakeable" if report.phase is Phase.IDLE else "no"),
        Fact("serving", FactState.NOT_MEASURED, NOT_MEASURED_TEXT),
        fact("draining", bool(draining), f"{len(draining)} pods" if draining else "no"),
        fact("degraded / failed", failed, report.message if failed else "no"),
        fact("deleting", report.phase is Phase.DELETING, report.message if report.phase is Phase.DELETING else "no"),
        Fact(
            "unknown",
            FactState.YES if lost else FactState.NO,
            report.message if lost else "no",
            observed_at,
        ),
    )


def _declared_text(declared: Declaration) -> str:
    if not declared.wanted:
        return "no longer wanted"
    if declared.replicas_min == declared.replicas_max:
        return f"{declared.replicas_min} replicas"
    return f"{declared.replicas_min} to {declared.replicas_max} replicas"


def _loading_text(stages: list[Substage]) -> str:
    counted = [f"{stages.count(stage)} {stage.value}" for stage in Substage if stage in stages]
    return ", ".join(counted) or "no"
