"""What a pass over a deployment writes beside the row's own columns: applied objects, timeline, quota hold, request."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from fleet.models import Grant
from fleet.services.parts.holds import hold_end, hold_lower
from models_app.domain.holding import devices_to_hold, may_end
from models_app.domain.phases import Phase
from models_app.models import AppliedObject, Deployment, StateChange
from models_app.reconcile.view import AppliedNow, DeploymentPass
from models_app.selectors.specs import CONSUMER_KIND
from models_app.services.parts.deployments import deployment_stop, record
from portal.approvals.domain.states import RequestState
from portal.approvals.models import Request
from portal.approvals.services.parts.outcomes import request_failed, request_fulfilled
from portal.audit.domain.actors import Actor
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.domain.outcomes import Outcome
from portal.work.models import Desired

LOOP = "deployment-loop"


def lock_grant(view: DeploymentPass) -> None:
    """Grants come before the consumer row in the lock order."""
    with unscoped("the deployment loop serves every project"):
        list(Grant.objects.select_for_update(of=("self",)).filter(pk=view.deployment.grant_id))


def record_pass(row: Deployment, view: DeploymentPass, outcome: Outcome, now: datetime) -> None:
    """Inside the recording transaction, the grant and the row locked. ``row`` may be newer than the pass's view."""
    actor = Actor.service(LOOP, request_id=row.request_id)
    # The base manager finds the row without its joins; the pass has them.
    row.project = view.deployment.project
    _record_objects(actor, row, view, now)
    _record_phase(row, outcome.updates, now)
    _record_hold(actor, row, view)
    _record_request(actor, row, view, outcome.updates)
    if _is_hopeless(row, view):
        deployment_stop(actor=actor, public_id=row.public_id, reason=view.notes.failed)
    if outcome.updates.get("archived_at") and row.archived_at is None:
        record(actor, "deployment.archive", row, {"archived": False}, {"archived": True})


def _record_objects(actor: Actor, row: Deployment, view: DeploymentPass, now: datetime) -> None:
    notes = view.notes
    if notes.standing is None:
        return
    known = {(item.kind, item.name): item for item in view.applied}
    for key, item in notes.applied.items():
        before = known.pop(key, None)
        if before is not None and before.uid and before.uid != item.uid:
            _objects(row).filter(pk=before.pk).update(gone_at=now)
            before = None
        _put(row, view, item, before, now)
    for key, before in known.items():
        if key not in notes.standing:
            _objects(row).filter(pk=before.pk).update(gone_at=now)
    fresh = [str(item.ref) for item in notes.applied.values() if item.fresh]
    if fresh:
        record(actor, "deployment.apply", row, None, {"objects": fresh, "generation": view.deployment.generation})
    if notes.deleted:
        record(actor, "deployment.remove_objects", row, {"objects": [str(ref) for ref in notes.deleted]}, None)


def _put(row: Deployment, view: DeploymentPass, item: AppliedNow, before: AppliedObject | None, now: datetime) -> None:
    columns: dict[str, Any] = {
        "uid": item.uid,
        "resource_version": item.resource_version,
        "spec_hash": item.spec_hash,
        "generation": view.deployment.generation,
        "manifest": item.manifest,
    }
    if before is None:
        AppliedObject.objects.create(
            deployment=row,
            project_id=row.project_id,
            api_version=item.ref.api_version,
            kind=item.ref.kind,
            namespace=item.ref.namespace,
            name=item.ref.name,
            applied_at=now,
            **columns,
        )
    elif item.fresh or before.resource_version != item.resource_version:
        if item.fresh:
            columns["applied_at"] = now
        _objects(row).filter(pk=before.pk).update(**columns)


def _objects(row: Deployment) -> QuerySet[AppliedObject]:
    rows: QuerySet[AppliedObject] = AppliedObject.objects.for_project(row.project).filter(deployment_id=row.pk)
    return rows


def _record_phase(row: Deployment, updates: Any, now: datetime) -> None:
    """One line of the timeline for each change of phase or reason; changed numbers alone are no step."""
    phase, reason = updates.get("phase"), updates.get("phase_reason", "")
    if phase is not None and (phase, reason) != (row.phase, row.phase_reason):
        StateChange.objects.create(
            deployment_id=row.pk,
            project_id=row.project_id,
            phase=phase,
            reason=reason,
            message=updates.get("phase_message", ""),
            at=now,
        )


def _record_hold(actor: Actor, row: Deployment, view: DeploymentPass) -> None:
    """Lower the hold to what is still wanted or running, by the row as it is now; end it when nothing is (Q1)."""
    wanted = row.desired == Desired.PRESENT
    seen = view.notes.seen
    if may_end(wanted=wanted, seen=seen, objects_may_make_pods=view.notes.makers_left):
        hold_end(actor=actor, consumer_kind=CONSUMER_KIND, consumer_id=row.public_id)
        return
    devices = devices_to_hold(
        wanted=wanted, ceiling=row.replicas_max, devices_per_replica=row.devices_per_replica, seen=seen
    )
    if devices:
        hold_lower(actor=actor, consumer_kind=CONSUMER_KIND, consumer_id=row.public_id, devices=devices)


def _record_request(actor: Actor, row: Deployment, view: DeploymentPass, updates: Any) -> None:
    if not row.approval_id:
        return
    if view.notes.failed:
        if not _is_hopeless(row, view):
            return
        request_failed(actor=actor, public_id=row.approval_id, reason=view.notes.failed)
    elif updates.get("phase") == Phase.READY or (
        updates.get("phase") == Phase.IDLE and _still_approved(row, replicas_min=0)
    ):
        if not request_fulfilled(actor=actor, public_id=row.approval_id) and _still_approved(row):
            hints.nudge(CONSUMER_KIND, row.public_id)  # somebody holds the request: say it again at once
    elif updates.get("archived_at"):
        request_failed(actor=actor, public_id=row.approval_id, reason="It was deleted before it was ever ready.")


def _is_hopeless(row: Deployment, view: DeploymentPass) -> bool:
    """The cluster refused for good what the row still wants; a change made meanwhile is tried first."""
    return bool(view.notes.failed) and row.generation == view.deployment.generation


def _still_approved(row: Deployment, *, replicas_min: int | None = None) -> bool:
    """Whether its request waits to be seen true; with ``replicas_min``, whether that is what it asked for."""
    rows = Request.objects.for_project(row.project).filter(public_id=row.approval_id, state=RequestState.APPROVED.value)
    if replicas_min is not None:
        rows = rows.filter(payload__replicas_min=replicas_min)
    return bool(rows.exists())
