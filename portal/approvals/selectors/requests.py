"""Requests as an actor may see them, what waits on whom, and what the actor may do with each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from portal.approvals.domain.previews import Preview
from portal.approvals.domain.states import RequestState, may_move
from portal.approvals.kinds import all_kinds, kind_of, known_kind
from portal.approvals.models import Decision, Request
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import InvalidInput, NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import permissions_of, projects_where, require


class RequestAct(StrEnum):
    """What may be done with a request; the buttons of its page and the links of its API answer."""

    APPROVE = "approve"
    DENY = "deny"
    WITHDRAW = "withdraw"
    REVOKE = "revoke"


def request_get(*, actor: Actor, public_id: str) -> Request:
    """The request with its project, author and decisions; NotFound when it does not exist for ``actor``."""
    request = request_list(actor=actor).filter(public_id=public_id).first()
    if request is None:
        raise NotFound
    return request


def request_list(
    *, actor: Actor, project: Project | None = None, state: RequestState | str | None = None
) -> QuerySet[Request]:
    """The requests of the projects ``actor`` may read (or of ``project``), newest first, with what a row shows."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    if project is not None:
        require(actor=actor, permission=Permission.PROJECT_READ, project=project)
        rows: QuerySet[Request] = Request.objects.for_project(project)
    else:
        rows = Request.objects.for_projects(readable.values("pk"))
    if state is not None:
        rows = rows.filter(state=_state(state).value)
    decisions = Decision.objects.select_related("decider").order_by("stage", "pk")
    return (
        rows.select_related("project__organization", "requester")
        .prefetch_related(Prefetch("decisions", queryset=decisions))
        .order_by("-created_at", "-pk")
    )


def inbox_list(*, actor: Actor) -> QuerySet[Request]:
    """What waits for a decision of ``actor``, oldest first: its kinds, where the role decides them, never one's own."""
    decidable = [
        Q(kind=kind.name, project__in=projects_where(actor=actor, permission=kind.decide_permission).values("pk"))
        for kind in all_kinds()
    ]
    rows = request_list(actor=actor, state=RequestState.SUBMITTED).exclude(requester_id=actor.user_pk)
    if not decidable:
        return rows.none()
    return rows.filter(reduce(or_, decidable)).exclude(expires_at__lte=now()).order_by("submitted_at", "pk")


def inbox_count(*, actor: Actor) -> int:
    """How many requests wait for a decision of ``actor``."""
    return inbox_list(actor=actor).count()


def own_waiting_list(*, actor: Actor) -> QuerySet[Request]:
    """The actor's own requests that wait on others: undecided, or approved and not seen true yet; oldest first."""
    waiting = [RequestState.SUBMITTED.value, RequestState.APPROVED.value]
    return request_list(actor=actor).filter(requester_id=actor.user_pk, state__in=waiting).order_by("created_at", "pk")


def request_preview(*, actor: Actor, kind: str, project: Project, payload: Mapping[str, Any]) -> Preview:
    """What submitting ``payload`` would mean now; writes nothing. InvalidInput names the fields that are wrong."""
    require(actor=actor, permission=Permission.REQUEST_CREATE, project=project)
    rules = kind_of(kind)
    return rules.preview(rules.clean(payload, project=project), project=project, now=now())


def request_outlook(*, actor: Actor, request: Request) -> Preview:
    """The same checks for a request that was submitted, as things stand now: what its decider looks at."""
    require(actor=actor, permission=Permission.PROJECT_READ, project=request.project)
    return kind_of(request.kind).preview(request.payload, project=request.project, now=now())


def acts_on(*, actor: Actor, request: Request, permissions: Iterable[Permission] | None = None) -> frozenset[RequestAct]:
    """What ``actor`` may do with ``request`` now, by the table of moves and the roles.

    ``permissions`` is what the actor holds in the request's project, when the caller has it already (lists).
    """
    held = frozenset(permissions) if permissions is not None else permissions_of(actor=actor, project=request.project)
    state = RequestState(request.state)
    rules = known_kind(request.kind)
    if rules is None:
        return frozenset()
    own = request.requester_id == actor.user_pk
    over = state is RequestState.SUBMITTED and request.expires_at is not None and request.expires_at <= now()
    acts = set()
    if rules.decide_permission in held and not own and not over:
        if may_move(state, RequestState.APPROVED):
            acts.add(RequestAct.APPROVE)
        if may_move(state, RequestState.DENIED):
            acts.add(RequestAct.DENY)
    if own and Permission.REQUEST_CREATE in held and may_move(state, RequestState.WITHDRAWN):
        acts.add(RequestAct.WITHDRAW)
    if rules.needs_to_revoke in held and may_move(state, RequestState.REVOKED):
        acts.add(RequestAct.REVOKE)
    return frozenset(acts)


def _state(state: RequestState | str) -> RequestState:
    try:
        return RequestState(state)
    except ValueError as error:
        known = ", ".join(RequestState)
        raise InvalidInput("The state is not known.", fields={"state": [f"One of: {known}."]}) from error
