from datetime import timedelta

import pytest

from portal.approvals.models import Request
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import (
    UNDECIDED_FOR,
    request_revoke,
    request_submit,
    request_withdraw,
    requests_expire,
)
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel import clock
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from portal.tenancy.models import unscoped
from portal.tenancy.services.organizations import project_close
from tests.approvals.kind import NAME


def state_of(request):
    with unscoped("a test looks"):
        return Request.objects.get(pk=request.pk).state


def test_a_member_asks(cast, ask):
    request = ask(3)
    assert (request.state, request.title, request.version) == ("submitted", "3 devices", 1)
    assert request.requester == cast.member
    assert request.expires_at - request.submitted_at == UNDECIDED_FOR
    event = AuditEvent.objects.get()
    assert (event.action, event.object_id, event.reason) == ("request.submit", request.public_id, "for science")
    assert event.after["payload"] == {"devices": 3, "grant": ""}


@pytest.mark.parametrize(("name", "error"), [("viewer", Forbidden), ("auditor", Forbidden), ("outsider", NotFound)])
def test_others_do_not(ask, name, error):
    with pytest.raises(error):
        ask(by=name)


def test_a_loop_asks_for_nothing(cast, toy):
    with pytest.raises(Forbidden):
        request_submit(actor=Actor.service("loop"), kind=NAME, project=cast.project, payload={"devices": 1})


def test_bad_input_names_its_field(ask):
    with pytest.raises(InvalidInput) as caught:
        ask("three")
    assert caught.value.fields == {"devices": ["A whole number."]}


def test_an_unknown_kind_names_those_there_are(cast, act, toy):
    with pytest.raises(InvalidInput) as caught:
        request_submit(actor=act("member"), kind="nope", project=cast.project, payload={})
    assert NAME in caught.value.fields["kind"][0]


def test_a_shape_that_can_never_run_is_refused_at_once(ask, toy):
    toy.refuse = "No node has 9 devices: the largest that fits is 8."
    with pytest.raises(InvalidInput, match="largest that fits is 8") as caught:
        ask(9)
    assert caught.value.fields == {"devices": [toy.refuse]}
    assert not AuditEvent.objects.exists()


def test_its_author_withdraws_it_and_again_changes_nothing(ask, act):
    request = ask()
    for _ in range(2):
        request_withdraw(actor=act("member"), public_id=request.public_id)
    assert state_of(request) == "withdrawn"
    assert AuditEvent.objects.filter(action="request.withdraw").count() == 1


def test_nobody_else_withdraws_it(ask, act):
    request = ask()
    for name, error in (("lead", Forbidden), ("org_admin", Forbidden), ("outsider", NotFound)):
        with pytest.raises(error):
            request_withdraw(actor=act(name), public_id=request.public_id)


def test_a_decided_one_is_not_withdrawn(approved, act):
    with pytest.raises(Conflict, match="approved"):
        request_withdraw(actor=act("member"), public_id=approved.public_id)


def test_a_stale_form_is_told_so(ask, act):
    request = ask()
    with pytest.raises(Stale):
        request_withdraw(actor=act("member"), public_id=request.public_id, version=7)


@pytest.mark.parametrize("fulfilled", [False, True])
def test_c37_revoking_removes_the_workload_whatever_the_prior_state(ask, act, toy, fulfilled):
    toy.complete = fulfilled
    request = ask()
    request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    for _ in range(2):
        request_revoke(actor=act("lead"), public_id=request.public_id, reason="Not used.")
    assert state_of(request) == "revoked"
    assert toy.events == [("fulfil", request.public_id), ("revoke", request.public_id)]


def test_a_revocation_says_why(approved, act):
    with pytest.raises(InvalidInput) as caught:
        request_revoke(actor=act("lead"), public_id=approved.public_id, reason=" ")
    assert list(caught.value.fields) == ["reason"]


def test_an_undecided_one_is_not_revoked(ask, act):
    with pytest.raises(Conflict):
        request_revoke(actor=act("lead"), public_id=ask().public_id, reason="why")


def test_a_member_revokes_nothing(approved, act):
    with pytest.raises(Forbidden):
        request_revoke(actor=act("member"), public_id=approved.public_id, reason="why")


@pytest.mark.parametrize("state", ["submitted", "approved", "fulfilled"])
def test_c37_the_end_date_ends_it_in_whatever_state_it_is(ask, act, toy, state):
    with clock.frozen(clock.now()) as frozen:
        toy.complete = state == "fulfilled"
        toy.expires_at = frozen.at + timedelta(days=2)
        request = ask()
        end = request.expires_at
        if state != "submitted":
            request = request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
            end = toy.expires_at
        assert request.state == state
        assert requests_expire(end - timedelta(microseconds=1)) == 0
        assert requests_expire(end) == 1
        assert requests_expire(end) == 0
    assert state_of(request) == "expired"
    assert (("revoke", request.public_id) in toy.events) == (state != "submitted")


def test_one_that_cannot_end_holds_no_other_up(ask, act, toy, monkeypatch):
    with clock.frozen(clock.now()) as frozen:
        toy.expires_at = frozen.at + timedelta(days=2)
        stuck, other = [request_decide(actor=act("lead"), public_id=ask().public_id, verdict="approve") for _ in range(2)]
        with unscoped("a test sets the scene"):
            Request.objects.filter(pk=stuck.pk).update(kind="retired")
        assert requests_expire(toy.expires_at) == 1
    assert (state_of(stuck), state_of(other)) == ("approved", "expired")


def test_what_has_no_end_date_does_not_expire(approved):
    assert approved.expires_at is None
    assert requests_expire(clock.now() + timedelta(days=9999)) == 0


def test_c37_an_expired_one_is_not_approved_marked_or_not(ask, act):
    with clock.frozen(clock.now()) as frozen:
        request = ask()
        frozen.advance(UNDECIDED_FOR)
        with pytest.raises(Conflict, match="expired"):
            request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
        requests_expire(frozen.at)
        with pytest.raises(Conflict, match="expired"):
            request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    assert state_of(request) == "expired"


def test_a_closing_project_withdraws_what_is_open_and_takes_no_more(cast, ask, act, approved):
    request = ask()
    project_close(actor=act("org_admin"), public_id=cast.project.public_id)
    assert state_of(request) == "withdrawn"
    assert state_of(approved) == "approved"
    with pytest.raises(Conflict, match="closed"):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    cast.project.refresh_from_db()
    with pytest.raises(Conflict, match="closed"):
        ask()
