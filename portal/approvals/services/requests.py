"""The one request machine: ask, withdraw, revoke, expire. Deciding is in ``decisions.py``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Q

from portal.approvals.domain.states import RequestState
from portal.approvals.kinds import kind_of
from portal.approvals.models import Request
from portal.approvals.services.parts.moves import request_move
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, SlipwayError, Stale
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project, unscoped
from portal.tenancy.selectors.permissions import projects_where, require
from portal.tenancy.services.parts.projects import project_keep_open

UNDECIDED_FOR = timedelta(days=30)
"""How long a submitted request waits for people before it expires."""

_log = structlog.get_logger(__name__)


def request_submit(
    *, actor: Actor, kind: str, project: Project, payload: Mapping[str, Any], justification: str = ""
) -> Request:
    """Ask. The kind cleans the payload; a shape that can never be approved is refused at once (contract §2).

    InvalidInput names each wrong field, or each refusing check of the preview. What merely waits (for quota, for
    capacity) is accepted: people decide it.
    """
    require(actor=actor, permission=Permission.REQUEST_CREATE, project=project)
    if actor.user_pk is None:
        raise Forbidden("Only a person asks: a request has an author.")
    rules = kind_of(kind)
    at = now()
    clean = rules.clean(payload, project=project)
    refusals = rules.preview(clean, project=project, now=at).refusals
    if refusals:
        fields: dict[str, list[str]] = {}
        for check in refusals:
            fields.setdefault(check.field or check.name, []).append(check.text)
        raise InvalidInput(" ".join(check.text for check in refusals), fields=fields)
    with transaction.atomic(durable=True):
        project_keep_open(project=project)
        request: Request = Request.objects.create(
            kind=rules.name,
            project=project,
            requester_id=actor.user_pk,
            title=rules.title(clean)[:200],
            payload=clean,
            justification=justification.strip(),
            state=RequestState.SUBMITTED.value,
            created_at=at,
            submitted_at=at,
            expires_at=at + UNDECIDED_FOR,
        )
        event_record(
            actor=actor,
            action="request.submit",
            object_kind="request",
            object_id=request.public_id,
            project_id=project.public_id,
            organization_id=project.organization.public_id,
            after={"state": request.state, "kind": request.kind, "title": request.title, "payload": clean},
            reason=request.justification,
        )
    return request


def request_withdraw(*, actor: Actor, public_id: str, version: int | None = None) -> Request:
    """Its author takes an undecided request back; again changes nothing. Conflict once it was decided."""
    with transaction.atomic(durable=True):
        request = request_locked(actor, public_id)
        if request.requester_id != actor.user_pk:
            raise Forbidden("Only its author withdraws a request; whoever decides it can deny it.")
        require(actor=actor, permission=Permission.REQUEST_CREATE, project=request.project)
        if request.state == RequestState.WITHDRAWN:
            return request
        check_version(request, version)
        request_move(actor=actor, request=request, to=RequestState.WITHDRAWN, action="request.withdraw")
    return request


def request_revoke(*, actor: Actor, public_id: str, reason: str, version: int | None = None) -> Request:
    """Take an approval back and remove what it made, fulfilled or not (C37); again changes nothing."""
    with transaction.atomic(durable=True):
        request = request_locked(actor, public_id)
        require(actor=actor, permission=kind_of(request.kind).needs_to_revoke, project=request.project)
        if request.state == RequestState.REVOKED:
            return request
        if not reason.strip():
            raise InvalidInput("A revocation needs a reason.", fields={"reason": ["Say why: its author reads it."]})
        check_version(request, version)
        request_move(actor=actor, request=request, to=RequestState.REVOKED, action="request.revoke", reason=reason.strip())
    return request


def requests_expire(at: datetime) -> int:
    """Expire every request whose end has come at ``at``, undecided, approved and fulfilled ones alike (C37); how many.

    Each in its own transaction, so that one that fails holds no other up; rows that somebody works on are left to the
    next run.
    """
    actor = Actor.service("requests-expire")
    with unscoped("loop: requests of every project end when their time has come"):
        due = list(Request.objects.filter(_ends_by(at)).order_by("expires_at", "pk").values_list("pk", flat=True)[:500])
        return sum(_expired(actor, pk, at) for pk in due)


def _expired(actor: Actor, pk: int, at: datetime) -> bool:
    try:
        return _expire(actor, pk, at)
    except (SlipwayError, DatabaseError) as error:
        _log.exception("request.expire_failed", request_pk=pk, error=str(error))
        return False


def _ends_by(at: datetime) -> Q:
    states = [RequestState.SUBMITTED.value, RequestState.APPROVED.value, RequestState.FULFILLED.value]
    return Q(expires_at__lte=at, state__in=states)


def _expire(actor: Actor, pk: int, at: datetime) -> bool:
    with transaction.atomic(durable=True):
        request = (
            Request.objects.select_related("project__organization")
            .select_for_update(of=("self",), skip_locked=True)
            .filter(_ends_by(at), pk=pk)
            .first()
        )
        if request is None:
            return False
        undecided = request.state == RequestState.SUBMITTED
        reason = "Nobody decided it in time." if undecided else "Its end date has passed."
        request_move(actor=actor, request=request, to=RequestState.EXPIRED, action="request.expire", reason=reason)
    return True


def request_locked(actor: Actor, public_id: str) -> Request:
    """The request, its row locked first of all (lock order); NotFound when it does not exist for ``actor``."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ).values("pk")
    request: Request | None = (
        Request.objects.for_projects(readable)
        .select_related("project__organization", "requester")
        .select_for_update(of=("self",))
        .filter(public_id=public_id)
        .first()
    )
    if request is None:
        raise NotFound
    return request


def check_version(request: Request, version: int | None) -> None:
    """Stale when the caller acted on an older version than the one that stands."""
    if version is not None and version != request.version:
        raise Stale("The request was changed since you loaded it: load it again, then decide.")


def check_undecided_in_time(request: Request, at: datetime) -> None:
    """Conflict when the time to decide is over, even before the sweep has marked it."""
    if request.state == RequestState.SUBMITTED and request.expires_at is not None and request.expires_at <= at:
        raise Conflict("This request has expired: ask again with a new one.", code="request_expired")
