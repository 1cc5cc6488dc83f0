"""Grants over time: those that start, those near their end, and those that ended. Decisions are the request machine's."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Q

from fleet.domain.grant_states import GrantState
from fleet.models import Grant
from fleet.services.parts.grants import grant_move
from portal.approvals.services.parts.outcomes import request_fulfilled
from portal.audit.domain.actors import Actor
from portal.kernel.errors import SlipwayError
from portal.tenancy.models import unscoped

EXPIRING_BEFORE = timedelta(days=14)
"""How long before its end a grant is shown as expiring."""

_log = structlog.get_logger(__name__)


def grants_expire(at: datetime) -> int:
    """Move every grant to where the clock ``at`` says it is: pending → active → expiring → expired; how many moved.

    What a hold may do never waits for this: ``hold_raise`` compares instants itself. An ended grant stops its consumers.
    Each grant in its own transaction; one that fails, or that somebody works on, is left to the next run.
    """
    actor = Actor.service("grants-expire")
    with unscoped("loop: grants of every project follow the clock"):
        due = list(Grant.objects.filter(_due(at)).order_by("pk").values_list("pk", flat=True)[:500])
        return sum(_advanced(actor, pk, at) for pk in due)


def _advanced(actor: Actor, pk: int, at: datetime) -> bool:
    try:
        return _advance(actor, pk, at)
    except (SlipwayError, DatabaseError) as error:
        _log.exception("grant.expire_failed", grant_pk=pk, error=str(error))
        return False


def _due(at: datetime) -> Q:
    active, expiring, pending = GrantState.ACTIVE.value, GrantState.EXPIRING.value, GrantState.PENDING.value
    return (
        Q(state=pending, starts_at__lte=at)
        | Q(state=active, ends_at__lte=at + EXPIRING_BEFORE)
        | Q(state=expiring, ends_at__lte=at)
    )


def _advance(actor: Actor, pk: int, at: datetime) -> bool:
    with transaction.atomic(durable=True):
        grant = (
            Grant.objects.select_related("project__organization", "profile")
            .select_for_update(of=("self",), skip_locked=True)
            .filter(_due(at), pk=pk)
            .first()
        )
        if grant is None:
            return False
        if grant.state == GrantState.PENDING:
            grant_move(actor=actor, grant=grant, to=GrantState.ACTIVE, reason="Its start has come.")
            request_fulfilled(actor=actor, public_id=grant.approval_id)
            return True
        if grant.ends_at is not None and grant.ends_at <= at:
            return grant_move(actor=actor, grant=grant, to=GrantState.EXPIRED, reason="Its end date has passed.")
        return grant_move(actor=actor, grant=grant, to=GrantState.EXPIRING, reason="Its end date is near.")
