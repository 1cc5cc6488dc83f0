"""What the owner's loop says of an approved request, from inside its own recording transaction."""

from __future__ import annotations

from django.db import connection

from portal.approvals.domain.states import RequestState
from portal.approvals.models import Request
from portal.approvals.services.parts.moves import request_move
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.tenancy.models import unscoped


def request_fulfilled(*, actor: Actor, public_id: str) -> bool:
    """The owner's loop saw it true once: approved → fulfilled. True when it moved now.

    False when there is nothing to move (fulfilled before, taken back, unknown id), or when somebody holds the request
    row: the caller holds its own row already, so waiting here could deadlock. The loop says it again at its next pass.
    """
    return _move(actor, public_id, RequestState.FULFILLED, "request.fulfil", "")


def request_failed(*, actor: Actor, public_id: str, reason: str) -> bool:
    """It cannot become true: approved → failed, with the reason shown to its author. The caller releases the hold.

    True and False as for ``request_fulfilled``.
    """
    return _move(actor, public_id, RequestState.FAILED, "request.fail", reason)


def _move(actor: Actor, public_id: str, to: RequestState, action: str, reason: str) -> bool:
    if not connection.in_atomic_block:
        raise AssertionError("request outcomes are written inside the loop's recording transaction")
    with unscoped("a loop reports the outcome of the request its row came from"):
        request = (
            Request.objects.select_related("project__organization")
            .select_for_update(of=("self",), skip_locked=True)
            .filter(public_id=public_id, state=RequestState.APPROVED.value)
            .first()
        )
    if request is None:
        return False
    if to is RequestState.FULFILLED:
        request_move(actor=actor, request=request, to=to, action=action, reason=reason, fulfilled_at=now())
    else:
        request_move(actor=actor, request=request, to=to, action=action, reason=reason)
    return True
