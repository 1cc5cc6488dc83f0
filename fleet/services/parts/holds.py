"""Quota holds (Q1, Q5): every rise under the grant's row lock, every change with an audit row.

Locks: grants by id, then the hold; the caller holds its request row before, and takes its consumer row after.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import Sum

from fleet.domain.grant_states import LIVE, GrantState
from fleet.domain.grants import GrantTerms, hold_answer
from fleet.models import Grant, QuotaHold
from fleet.services.parts.spaces import space_touch
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import NotFound, QuotaExceeded
from portal.tenancy.models import unscoped


def hold_raise(*, actor: Actor, grant_id: int, consumer_kind: str, consumer_id: str, devices: int) -> QuotaHold:
    """Hold ``devices`` in all for the consumer on the grant with primary key ``grant_id``; never lowers a hold.

    QuotaExceeded, with the numbers, when the others leave too few, or the grant has not started, has ended or was
    revoked. A hold that is as large already is returned as it is, even on an ended grant: nothing new is held.
    """
    _require_transaction()
    if devices < 0:
        raise ValueError("a hold has 0 or more devices")
    with unscoped("the grant names the project; the lock comes before anything is known of it"):
        grant = (
            Grant.objects.select_related("project__organization", "profile")
            .select_for_update(of=("self",))
            .filter(pk=grant_id)
            .first()
        )
        if grant is None:
            raise NotFound
        hold = _open_hold(consumer_kind, consumer_id)
        if hold is not None and hold.grant_id != grant.pk:
            raise QuotaExceeded("This already holds devices of another grant: end it before it moves.", code="other_grant")
        if hold is not None and hold.devices >= devices:
            return hold
        others = grant.holds.filter(ended_at=None).exclude(pk=hold.pk if hold else None)
        held_by_others = others.aggregate(total=Sum("devices"))["total"] or 0
    answer = hold_answer(_terms(grant), others=held_by_others, wanted=devices, at=now())
    if answer.refusal:
        raise QuotaExceeded(f"{grant.profile.title}: {answer.refusal}")
    if hold is None:
        hold = QuotaHold.objects.create(
            grant=grant, project=grant.project, consumer_kind=consumer_kind, consumer_id=consumer_id, devices=devices
        )
        _record(actor, "hold.raise", hold, 0, devices)
    else:
        before = hold.devices
        _write(hold, devices=devices)
        _record(actor, "hold.raise", hold, before, devices)
    return hold


def hold_lower(*, actor: Actor, consumer_kind: str, consumer_id: str, devices: int) -> QuotaHold | None:
    """Lower the consumer's open hold to ``devices``; only its owner's loop says so (Q1). Never raises; None without one."""
    hold = _locked_hold(consumer_kind, consumer_id)
    if hold is None or hold.devices <= devices:
        return hold
    before = hold.devices
    _fence_follows(hold)
    _write(hold, devices=max(0, devices))
    _record(actor, "hold.lower", hold, before, hold.devices)
    return hold


def hold_end(*, actor: Actor, consumer_kind: str, consumer_id: str) -> bool:
    """End the consumer's hold: nothing is wanted any more and the last pod uid is proven gone. True when it ended now."""
    hold = _locked_hold(consumer_kind, consumer_id)
    if hold is None:
        return False
    before = hold.devices
    _fence_follows(hold)
    _write(hold, ended=True)
    _record(actor, "hold.end", hold, before, 0)
    return True


def _locked_hold(consumer_kind: str, consumer_id: str) -> QuotaHold | None:
    """The open hold, its grant locked before it."""
    _require_transaction()
    with unscoped("a hold is found by its consumer, whose own row the caller was allowed to change"):
        grant_id = (
            QuotaHold.objects.filter(consumer_kind=consumer_kind, consumer_id=consumer_id, ended_at=None)
            .values_list("grant_id", flat=True)
            .first()
        )
        if grant_id is None:
            return None
        list(Grant.objects.select_for_update(of=("self",)).filter(pk=grant_id))
        return _open_hold(consumer_kind, consumer_id)


def _open_hold(consumer_kind: str, consumer_id: str) -> QuotaHold | None:
    hold: QuotaHold | None = (
        QuotaHold.objects.select_related("project__organization", "grant")
        .select_for_update(of=("self",))
        .filter(consumer_kind=consumer_kind, consumer_id=consumer_id, ended_at=None)
        .first()
    )
    return hold


def _write(hold: QuotaHold, *, devices: int | None = None, ended: bool = False) -> None:
    hold.updated_at = now()
    if devices is not None:
        hold.devices = devices
    if ended:
        hold.ended_at = hold.updated_at
    hold.save(update_fields=["devices", "updated_at", "ended_at"])


def _fence_follows(hold: QuotaHold) -> None:
    """Have the quota fence written anew where ``hold``, about to shrink, is part of what exceeds the live grant.

    The fence carries the grants and what is held beyond them; a change below the grant leaves it as it is.
    """
    with unscoped("the hold names its grant, which is locked"):
        total = hold.grant.holds.filter(ended_at=None).aggregate(total=Sum("devices"))["total"] or 0
    if GrantState(hold.grant.state) not in LIVE or total > hold.grant.devices:
        space_touch(project=hold.project)


def _terms(grant: Grant) -> GrantTerms:
    return GrantTerms(devices=grant.devices, state=GrantState(grant.state), starts_at=grant.starts_at, ends_at=grant.ends_at)


def _record(actor: Actor, action: str, hold: QuotaHold, before: int, after: int) -> None:
    common = {"grant": hold.grant.public_id, "consumer_kind": hold.consumer_kind, "consumer_id": hold.consumer_id}
    event_record(
        actor=actor,
        action=action,
        object_kind="hold",
        object_id=hold.consumer_id,
        project_id=hold.project.public_id,
        organization_id=hold.project.organization.public_id,
        before={**common, "devices": before},
        after={**common, "devices": after},
    )


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise AssertionError("holds change inside the transaction of what they are for")
