"""How a pass over a deployment ends: the row's columns and conditions for each of its endings."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fleet.cluster import ClusterError, Unauthorized, Unreachable
from fleet.reconcile.failures import SYNCED, message_of, outcome_of, reason_of
from models_app.domain.phases import Declaration, Phase, PhaseReport, phase_of
from models_app.domain.sightings import Sighting, sighting_of
from models_app.reconcile.view import DeploymentPass
from models_app.selectors.declarations import declaration_of
from portal.work.domain.conditions import Condition, Truth
from portal.work.domain.outcomes import Blocked, Outcome, Settled, Wait

LOOK_AGAIN = timedelta(seconds=5)
"""While pods come up or go down; the observer's hints are faster, this is right without them."""

OPERATOR_AGAIN = timedelta(seconds=60)
READY = "Ready"


def progress(view: DeploymentPass, seen: Sighting, now: datetime) -> Outcome:
    """Everything is applied: settled once all replicas are ready (or none is wanted), else look again soon."""
    report = phase_of(_declared(view, applied=True), seen)
    view.notes.ready_once = report.phase is Phase.READY
    updates = _updates(view, report, now, seen, applied=True)
    conditions = (
        Condition(SYNCED, Truth.TRUE, "Applied", f"Generation {view.deployment.generation} is applied."),
        _ready_condition(report),
    )
    if report.phase in (Phase.READY, Phase.IDLE) and not any(pod.deleting for pod in seen.live_pods):
        return Settled(updates=updates, conditions=conditions)
    return Wait(after=LOOK_AGAIN, reason=report.message, updates=updates, conditions=conditions)


def operator_wait(view: DeploymentPass, message: str, now: datetime) -> Outcome:
    """The engine's operator is not installed: nothing can be applied, and the quota stays held."""
    report = phase_of(_declared(view, operator_missing=message), None)
    updates = _updates(view, report, now, None)
    updates["observed"] = {**view.deployment.observed, "operator_missing": message}
    condition = Condition(SYNCED, Truth.FALSE, "OperatorNotInstalled", message)
    return Wait(after=OPERATOR_AGAIN, reason=message, updates=updates, conditions=(condition, _ready_condition(report)))


def cannot(view: DeploymentPass, seen: Sighting | None, now: datetime, *, reason: str, message: str) -> Outcome:
    """Nothing was applied, and nothing changes by trying again: shown with the field and its owner, or the broken rule."""
    report = phase_of(_declared(view, problem_reason=reason, problem=message), seen)
    updates = _updates(view, report, now, seen, problem_reason=reason, problem=message)
    conditions = (Condition(SYNCED, Truth.FALSE, reason, message), _ready_condition(report))
    return Blocked(reason=reason, message=message, updates=updates, conditions=conditions)


def never(view: DeploymentPass, now: datetime, *, reason: str, message: str) -> Outcome:
    """It was never ready and its manifest is refused: it cannot become true. ``recording`` fails its request and stops it,
    unless somebody has changed it since this pass read it."""
    view.notes.failed = message
    report = PhaseReport(Phase.FAILED, reason, message)
    updates = _updates(view, report, now, None, problem_reason=reason, problem=message)
    conditions = (Condition(SYNCED, Truth.FALSE, reason, message), _ready_condition(report))
    return Wait(after=timedelta(0), reason=message, updates=updates, conditions=conditions)


def removing(view: DeploymentPass, seen: Sighting, now: datetime) -> Outcome:
    """The order to go was given; objects or pods are still there."""
    report = phase_of(_declared(view), seen)
    updates = _updates(view, report, now, seen)
    condition = Condition(SYNCED, Truth.FALSE, report.reason or "Deleting", report.message)
    return Wait(after=LOOK_AGAIN, reason=report.message, updates=updates, conditions=(condition, _ready_condition(report)))


def removed(view: DeploymentPass, seen: Sighting, now: datetime) -> Outcome:
    """Objects and pods are proven gone: archive the row."""
    report = PhaseReport(Phase.DELETING, "", "Gone from the cluster.")
    updates = {**_updates(view, report, now, seen), "archived_at": view.deployment.archived_at or now}
    condition = Condition(SYNCED, Truth.TRUE, "Removed", report.message)
    return Settled(updates=updates, conditions=(condition,))


def refused_by_cluster(view: DeploymentPass, error: ClusterError, now: datetime) -> Outcome:
    """The pass met ``error`` before it saw enough. What was known stays; a lost cluster makes the phase unknown (D3)."""
    row = view.deployment
    reason, message = reason_of(error), message_of(error)
    if isinstance(error, Unreachable | Unauthorized):
        lost = replace(declaration_of(row), cluster_reachable=False, cluster_error=message)
        report = phase_of(lost, sighting_of(row.observed))
    elif row.phase in (Phase.READY, Phase.IDLE, Phase.DELETING):
        report = PhaseReport(Phase(row.phase), row.phase_reason, row.phase_message)
    else:
        phase = Phase.ADMITTED if row.phase in (Phase.DECLARED, Phase.UNKNOWN) else Phase(row.phase)
        report = PhaseReport(phase, reason, message)
    return outcome_of(error, updates=_phase_columns(view, report, now))


def _declared(
    view: DeploymentPass,
    *,
    applied: bool = False,
    problem_reason: str = "",
    problem: str = "",
    operator_missing: str = "",
) -> Declaration:
    """The row's declaration, with what this pass knows better: the cluster has just answered."""
    return replace(
        declaration_of(view.deployment),
        applied=applied,
        cluster_reachable=True,
        cluster_error="",
        problem_reason=problem_reason,
        problem=problem,
        operator_missing=operator_missing,
    )


def _phase_columns(view: DeploymentPass, report: PhaseReport, now: datetime) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "phase": report.phase.value,
        "phase_reason": str(report.reason)[:60],
        "phase_message": report.message,
    }
    if view.deployment.phase != report.phase:
        columns["phase_since"] = now
    return columns


def _updates(
    view: DeploymentPass, report: PhaseReport, now: datetime, seen: Sighting | None, *, applied: bool = False, **said: str
) -> dict[str, Any]:
    columns = _phase_columns(view, report, now)
    if seen is None:
        return columns
    row = view.deployment
    observed: dict[str, Any] = {**seen.as_json(), **said}
    observed["applied_generation"] = row.generation if applied else row.observed.get("applied_generation", 0)
    observed["ready_once"] = view.notes.ready_once or bool(row.observed.get("ready_once"))
    return {**columns, "observed": observed, "observed_at": now}


def _ready_condition(report: PhaseReport) -> Condition:
    if report.phase is Phase.READY:
        return Condition(READY, Truth.TRUE, "AllReplicasReady", report.message)
    truth = Truth.UNKNOWN if report.phase is Phase.UNKNOWN else Truth.FALSE
    return Condition(READY, truth, str(report.reason) or report.phase.value.capitalize(), report.message)
