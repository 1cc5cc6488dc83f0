"""Grants as an approval makes, changes and ends them; parts of the deciding transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction

from fleet.consumers import stop_of
from fleet.domain.grant_states import LIVE, GrantState, may_move
from fleet.models import GpuProfile, Grant, QuotaHold
from fleet.services.parts.spaces import space_touch
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict
from portal.tenancy.models import Project


def grant_put(
    *,
    actor: Actor,
    project: Project,
    profile: GpuProfile,
    devices: int,
    gpu_hours_per_month: int | None,
    starts_at: datetime,
    ends_at: datetime | None,
    approval_id: str,
    at: datetime,
) -> Grant:
    """The project's one live grant of ``profile`` with these terms: made new, or the standing one changed in place.

    Fewer devices than are held kills nothing and blocks what is new (Q1). The newest approval owns the grant: revoking
    an older one leaves it alone.
    """
    _require_transaction()
    terms: dict[str, Any] = {
        "devices": devices,
        "gpu_hours_per_month": gpu_hours_per_month,
        "ends_at": ends_at,
        "approval_id": approval_id,
    }
    grant: Grant | None = (
        Grant.objects.for_project(project)
        .select_for_update(of=("self",))
        .filter(profile=profile, state__in=[state.value for state in LIVE])
        .first()
    )
    if grant is None:
        state = GrantState.PENDING if starts_at > at else GrantState.ACTIVE
        try:
            with transaction.atomic():
                grant = Grant.objects.create(
                    project=project, profile=profile, starts_at=starts_at, state=state.value, created_at=at, **terms
                )
        except IntegrityError as error:
            raise Conflict("Another grant of this profile was approved just now: look at it, then decide again.") from error
        _record(actor, "grant.create", grant, None, snapshot(grant))
    else:
        before = snapshot(grant)
        terms["version"] = grant.version + 1
        if grant.state == GrantState.EXPIRING:
            terms["state"] = GrantState.ACTIVE.value
        if grant.state == GrantState.PENDING:
            terms["starts_at"] = starts_at
            if starts_at <= at:
                terms["state"] = GrantState.ACTIVE.value
        elif starts_at > at:
            raise Conflict("The standing grant has started: a change of it takes effect at once. Leave the start empty.")
        for name, value in terms.items():
            setattr(grant, name, value)
        grant.save(update_fields=list(terms))
        _record(actor, "grant.change", grant, before, snapshot(grant))
    space_touch(project=project)
    return grant


def grant_move(*, actor: Actor, grant: Grant, to: GrantState, reason: str = "") -> bool:
    """Move the locked ``grant`` along its table, by compare and swap; Conflict when the table has no such move.

    Ending it (expired, revoked, closed) stops what holds its devices; the holds stay until each pod is proven gone.
    """
    _require_transaction()
    old = GrantState(grant.state)
    if not may_move(old, to):
        raise Conflict(f"This grant is {old.value}, which does not become {to.value}.")
    before = snapshot(grant)
    moved = Grant.objects.for_project(grant.project).filter(pk=grant.pk, state=old.value)
    if not moved.update(state=to.value, version=grant.version + 1):
        return False
    grant.state, grant.version = to.value, grant.version + 1
    _record(actor, f"grant.{_VERBS[to]}", grant, before, snapshot(grant), reason)
    if to not in LIVE:
        _stop_consumers(actor, grant, reason or f"its grant is {to.value}")
    space_touch(project=grant.project)
    return True


def grants_end_with_project(*, actor: Actor, project: Project) -> None:
    """Close the live grants of a project that closes, and stop what holds their devices."""
    _require_transaction()
    live = Grant.objects.for_project(project).filter(state__in=[state.value for state in LIVE])
    for grant in live.select_related("project__organization").select_for_update(of=("self",)).order_by("pk"):
        grant_move(actor=actor, grant=grant, to=GrantState.CLOSED, reason="The project was closed.")


_VERBS = {
    GrantState.ACTIVE: "activate",
    GrantState.EXPIRING: "mark_expiring",
    GrantState.EXPIRED: "expire",
    GrantState.REVOKED: "revoke",
    GrantState.CLOSED: "close",
}


def _stop_consumers(actor: Actor, grant: Grant, reason: str) -> None:
    holds = QuotaHold.objects.for_project(grant.project).filter(grant=grant, ended_at=None)
    for kind, public_id in holds.order_by("consumer_kind", "consumer_id").values_list("consumer_kind", "consumer_id"):
        stop = stop_of(kind)
        if stop is not None:
            stop(actor=actor, public_id=public_id, reason=reason)


def snapshot(grant: Grant) -> dict[str, Any]:
    """What audit rows keep of a grant."""
    return {
        "profile": grant.profile.name,
        "devices": grant.devices,
        "gpu_hours_per_month": grant.gpu_hours_per_month,
        "state": grant.state,
        "starts_at": grant.starts_at.isoformat(),
        "ends_at": grant.ends_at.isoformat() if grant.ends_at else None,
        "approval_id": grant.approval_id,
    }


def _record(
    actor: Actor,
    action: str,
    grant: Grant,
    before: dict[str, Any] | None,
    after: dict[str, Any],
    reason: str = "",
) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="grant",
        object_id=grant.public_id,
        project_id=grant.project.public_id,
        organization_id=grant.project.organization.public_id,
        before=before,
        after=after,
        reason=reason,
    )


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise AssertionError("grants change inside the transaction of the decision they follow")
