"""The writer of request states walks every pair of the table (C37, design §6)."""

from itertools import product

import pytest
from django.db import IntegrityError, transaction

from portal.approvals.domain.states import UNDOES_FULFILMENT, RequestState, may_move
from portal.approvals.models import Request
from portal.approvals.services.parts.moves import request_move
from portal.approvals.services.parts.outcomes import request_failed, request_fulfilled
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict
from portal.tenancy.models import unscoped

LOOP = Actor.service("deployments")


def put(request, state):
    with unscoped("a test sets the scene"):
        Request.objects.filter(pk=request.pk).update(state=state.value)
    request.state = state.value
    return request


def state_of(request):
    with unscoped("a test looks"):
        return RequestState(Request.objects.get(pk=request.pk).state)


@pytest.mark.parametrize(("old", "new"), list(product(RequestState, RequestState)))
def test_c37_every_pair(ask, toy, old, new):
    request = put(ask(), old)
    before = AuditEvent.objects.count()
    if may_move(old, new):
        with transaction.atomic():
            request_move(actor=LOOP, request=request, to=new, action="request.test", reason="why")
        assert state_of(request) is new
        assert AuditEvent.objects.count() == before + 1
        undone = new in UNDOES_FULFILMENT and old in {RequestState.APPROVED, RequestState.FULFILLED}
        assert toy.events == ([("revoke", request.public_id)] if undone else [])
    else:
        with pytest.raises(Conflict), transaction.atomic():
            request_move(actor=LOOP, request=request, to=new, action="request.test", reason="why")
        assert state_of(request) is old
        assert AuditEvent.objects.count() == before
        assert toy.events == []


def test_the_database_knows_no_other_state(ask):
    request = ask()
    with pytest.raises(IntegrityError), transaction.atomic(), unscoped("a test"):
        Request.objects.filter(pk=request.pk).update(state="limbo")


def test_a_row_that_moved_meanwhile_is_not_overwritten(ask):
    request = ask()
    with unscoped("somebody else"):
        Request.objects.filter(pk=request.pk).update(version=2)
    with pytest.raises(Conflict, match="meanwhile"), transaction.atomic():
        request_move(actor=LOOP, request=request, to=RequestState.WITHDRAWN, action="request.withdraw")
    assert state_of(request) is RequestState.SUBMITTED


@pytest.mark.parametrize("state", [state for state in RequestState if state is not RequestState.APPROVED])
def test_the_loop_moves_nothing_but_what_is_approved(ask, state):
    request = put(ask(), state)
    with transaction.atomic():
        assert request_fulfilled(actor=LOOP, public_id=request.public_id) is False
        assert request_failed(actor=LOOP, public_id=request.public_id, reason="no") is False
    assert state_of(request) is state


def test_the_loop_fulfils_once(approved):
    with transaction.atomic():
        assert request_fulfilled(actor=LOOP, public_id=approved.public_id) is True
        assert request_fulfilled(actor=LOOP, public_id=approved.public_id) is False
    assert state_of(approved) is RequestState.FULFILLED
    assert AuditEvent.objects.filter(action="request.fulfil").count() == 1


def test_the_loop_says_why_it_failed(approved):
    with transaction.atomic():
        assert request_failed(actor=LOOP, public_id=approved.public_id, reason="No such image.") is True
    with unscoped("a test looks"):
        row = Request.objects.get(pk=approved.pk)
    assert (row.state, row.outcome) == ("failed", "No such image.")
    assert row.ended_at is not None


def test_an_unknown_id_is_nothing(db):
    with transaction.atomic():
        assert request_fulfilled(actor=LOOP, public_id="req_nope") is False
