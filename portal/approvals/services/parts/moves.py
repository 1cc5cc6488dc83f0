"""The one writer of request states: compare and swap along the table of moves, with the audit row beside it."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import F

from portal.approvals.domain.states import UNDOES_FULFILMENT, RequestState, may_move
from portal.approvals.kinds import kind_of
from portal.approvals.models import Request
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import Conflict
from portal.tenancy.models import Project

_MADE_SOMETHING = frozenset({RequestState.APPROVED, RequestState.FULFILLED})
_ENDS = frozenset(
    {
        RequestState.DENIED,
        RequestState.WITHDRAWN,
        RequestState.EXPIRED,
        RequestState.REVOKED,
        RequestState.FAILED,
    }
)


def request_move(*, actor: Actor, request: Request, to: RequestState, action: str, reason: str = "", **fields: Any) -> None:
    """Move the locked ``request`` to state ``to``, writing ``fields`` with it; Conflict when the table has no such move.

    A move that takes an approval back runs the kind's revoke in the same transaction, whatever the prior state (C37).
    """
    if not connection.in_atomic_block:
        raise AssertionError("request_move is called inside the caller's transaction")
    old = RequestState(request.state)
    if not may_move(old, to):
        raise Conflict(refusal(old, to), code=f"request_{old.value}")
    if to in _ENDS:
        fields.setdefault("ended_at", now())
        fields.setdefault("outcome", reason)
    moved = Request.objects.for_project(request.project).filter(pk=request.pk, state=old.value, version=request.version)
    if not moved.update(state=to.value, version=F("version") + 1, **fields):
        raise Conflict("The request was changed meanwhile: load it again.")
    request.state = to.value
    request.version += 1
    for name, value in fields.items():
        setattr(request, name, value)
    made: dict[str, Any] = {name: fields[name] for name in ("made_kind", "made_id") if name in fields}
    _record(actor, request, action, {"state": old.value}, {"state": to.value, **made}, reason)
    if to in UNDOES_FULFILMENT and old in _MADE_SOMETHING:
        kind_of(request.kind).revoke(request=request, actor=actor, reason=reason or f"request {to.value}")


def requests_end_with_project(*, actor: Actor, project: Project) -> None:
    """Withdraw what is still open in a project that closes."""
    open_states = [RequestState.DRAFT.value, RequestState.SUBMITTED.value]
    rows = Request.objects.for_project(project).filter(state__in=open_states).select_for_update(of=("self",))
    for request in rows.select_related("project__organization").order_by("pk"):
        request_move(
            actor=actor,
            request=request,
            to=RequestState.WITHDRAWN,
            action="request.withdraw",
            reason="The project was closed.",
        )


def refusal(old: RequestState, to: RequestState) -> str:
    """Why a request in ``old`` cannot become ``to``, in words that name the way out."""
    if old is RequestState.EXPIRED:
        return "This request has expired: ask again with a new one."
    if old in _ENDS:
        return f"This request is {old.value} and stays so: ask again with a new one."
    return f"This request is {old.value}, which does not become {to.value}."


def _record(
    actor: Actor,
    request: Request,
    action: str,
    before: dict[str, Any] | None,
    after: dict[str, Any],
    reason: str,
) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="request",
        object_id=request.public_id,
        project_id=request.project.public_id,
        organization_id=request.project.organization.public_id,
        before=before,
        after=after,
        reason=reason,
    )
