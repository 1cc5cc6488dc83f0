"""Deciding: approved = decided, held and the row written, in one transaction (contract §2, Q1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from portal.approvals.domain.states import RequestState, Verdict, may_move
from portal.approvals.kinds import kind_of
from portal.approvals.models import Decision, Request
from portal.approvals.services.parts.moves import refusal, request_move
from portal.approvals.services.requests import check_undecided_in_time, check_version, request_locked
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, SlipwayError
from portal.tenancy.selectors.permissions import require

_ALREADY = {
    Verdict.APPROVE: frozenset({RequestState.APPROVED, RequestState.FULFILLED}),
    Verdict.DENY: frozenset({RequestState.DENIED}),
}
"""The states in which the same verdict once more is a repeat: it changes nothing and is no error."""


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """What became of one of many: the request as it stands, or the error that left it as it was."""

    public_id: str
    request: Request | None
    error: SlipwayError | None


def request_decide(
    *, actor: Actor, public_id: str, verdict: Verdict | str, reason: str = "", version: int | None = None
) -> Request:
    """Approve or deny, once however many click, retry or decide at the same time (Q5).

    - The verdict it has already: the request, unchanged.
    - Denying what is approved takes it back and removes what it made (C37); that needs the ``version`` that the decider
      saw, so that two people who answer differently at once do not undo each other: the later one gets Conflict or Stale.
    - Approving what ended: Conflict. One's own request: Forbidden. No quota left: QuotaExceeded, and it stays submitted.
    """
    wanted = _verdict(verdict)
    with transaction.atomic(durable=True):
        return _decide(actor, public_id, wanted, reason.strip(), version)


def requests_decide(
    *,
    actor: Actor,
    public_ids: Sequence[str],
    verdict: Verdict | str,
    reason: str = "",
    versions: Mapping[str, int] | None = None,
) -> list[DecisionOutcome]:
    """Decide many, each in its own transaction and in the given order; a refusal of one leaves the others decided."""
    wanted = _verdict(verdict)
    outcomes = []
    for public_id in dict.fromkeys(public_ids):
        try:
            with transaction.atomic(durable=True):
                request = _decide(actor, public_id, wanted, reason.strip(), (versions or {}).get(public_id))
        except SlipwayError as error:
            outcomes.append(DecisionOutcome(public_id=public_id, request=None, error=error))
        else:
            outcomes.append(DecisionOutcome(public_id=public_id, request=request, error=None))
    return outcomes


def _decide(actor: Actor, public_id: str, verdict: Verdict, reason: str, version: int | None) -> Request:
    request = request_locked(actor, public_id)
    rules = kind_of(request.kind)
    require(actor=actor, permission=rules.decide_permission, project=request.project)
    decider = _decider(actor, request)
    state = RequestState(request.state)
    if state in _ALREADY[verdict]:
        return request
    check_undecided_in_time(request, now())
    if verdict is Verdict.APPROVE:
        if state is RequestState.SUBMITTED:
            check_version(request, version)
        _approve(actor, decider, request, reason)
        return request
    if not may_move(state, RequestState.DENIED):
        raise Conflict(refusal(state, RequestState.DENIED), code=f"request_{state.value}")
    if not reason:
        raise InvalidInput("A denial needs a reason.", fields={"reason": ["Say why: its author reads it."]})
    if state is not RequestState.SUBMITTED and version is None:
        raise Conflict(
            f"This request is {state.value} already: to take that back, load it again, or revoke it.",
            code=f"request_{state.value}",
        )
    check_version(request, version)
    _deny(actor, decider, request, reason)
    return request


def _decider(actor: Actor, request: Request) -> int:
    """The primary key of the person who decides; Forbidden for the request's author and for loops (A1)."""
    if actor.user_pk is None or request.requester_id == actor.user_pk:
        raise Forbidden("Nobody decides their own request: ask another person with this role.", code="own_request")
    return actor.user_pk


def _approve(actor: Actor, decider: int, request: Request, reason: str) -> None:
    state = RequestState(request.state)
    if not may_move(state, RequestState.APPROVED):
        raise Conflict(refusal(state, RequestState.APPROVED), code=f"request_{state.value}")
    made = kind_of(request.kind).fulfil(request=request, actor=actor)
    request_move(
        actor=actor,
        request=request,
        to=RequestState.APPROVED,
        action="request.approve",
        reason=reason,
        decided_at=now(),
        outcome=reason,
        made_kind=made.kind,
        made_id=made.id,
        expires_at=made.expires_at,
    )
    _decision(decider, request, Verdict.APPROVE, reason)
    if made.complete:
        request_move(actor=actor, request=request, to=RequestState.FULFILLED, action="request.fulfil", fulfilled_at=now())


def _deny(actor: Actor, decider: int, request: Request, reason: str) -> None:
    fields: dict[str, int] = {}
    if request.state != RequestState.SUBMITTED:
        fields["stage"] = request.stage + 1  # its stage has a decision, and the database allows one
    request_move(
        actor=actor,
        request=request,
        to=RequestState.DENIED,
        action="request.deny",
        reason=reason,
        decided_at=now(),
        **fields,
    )
    _decision(decider, request, Verdict.DENY, reason)


def _decision(decider: int, request: Request, verdict: Verdict, reason: str) -> None:
    Decision.objects.create(
        request=request, stage=request.stage, verdict=verdict.value, decider_id=decider, reason=reason, at=now()
    )


def _verdict(verdict: Verdict | str) -> Verdict:
    try:
        return Verdict(verdict)
    except ValueError as error:
        raise InvalidInput("The verdict is not known.", fields={"verdict": ["One of: approve, deny."]}) from error
