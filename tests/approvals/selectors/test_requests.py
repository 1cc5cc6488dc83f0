from itertools import product

import pytest

from portal.approvals.domain.states import RequestState, may_move
from portal.approvals.models import Request
from portal.approvals.selectors.requests import (
    RequestAct,
    acts_on,
    inbox_count,
    inbox_list,
    own_waiting_list,
    request_get,
    request_list,
    request_outlook,
    request_preview,
)
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import UNDECIDED_FOR
from portal.kernel import clock
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, SlipwayError
from portal.tenancy.models import unscoped
from tests.approvals.kind import NAME


def test_lists_and_lookups_stay_inside_the_tenant(cast, ask, act):
    request = ask()
    for name in ("viewer", "member", "lead", "org_admin", "auditor"):
        assert list(request_list(actor=act(name))) == [request]
        assert request_get(actor=act(name), public_id=request.public_id) == request
    for name in ("outsider", "fleet_operator", "platform_admin"):
        assert not request_list(actor=act(name))
        with pytest.raises(NotFound):
            request_get(actor=act(name), public_id=request.public_id)
        with pytest.raises(NotFound):
            request_list(actor=act(name), project=cast.project)


def test_a_list_by_state_and_one_that_is_not(ask, act, approved):
    request = ask()
    assert list(request_list(actor=act("viewer"), state="submitted")) == [request]
    assert list(request_list(actor=act("viewer"), state=RequestState.APPROVED)) == [approved]
    with pytest.raises(InvalidInput):
        request_list(actor=act("viewer"), state="limbo")


def test_the_inbox_holds_what_waits_for_me_oldest_first(ask, act):
    first, second, own = ask(), ask(), ask(by="lead")
    assert list(inbox_list(actor=act("lead"))) == [first, second]
    assert list(inbox_list(actor=act("other_lead"))) == [first, second, own]
    assert inbox_count(actor=act("org_admin")) == 3
    for name in ("viewer", "member", "auditor", "outsider", "fleet_operator"):
        assert not inbox_list(actor=act(name))


def test_the_inbox_drops_what_is_decided_or_over(ask, act):
    with clock.frozen(clock.now()) as frozen:
        request = ask()
        request_decide(actor=act("lead"), public_id=ask().public_id, verdict="deny", reason="no")
        assert list(inbox_list(actor=act("lead"))) == [request]
        frozen.advance(UNDECIDED_FOR)
        assert not inbox_list(actor=act("lead"))


def test_what_of_mine_waits_on_others(ask, act, approved):
    request = ask()
    ask(by="lead")
    assert list(own_waiting_list(actor=act("member"))) == [approved, request]


def test_a_preview_writes_nothing(cast, act, toy, django_assert_max_num_queries):
    preview = request_preview(actor=act("member"), kind=NAME, project=cast.project, payload={"devices": 2})
    assert preview.devices == 2
    assert not Request.objects.for_project(cast.project)
    with pytest.raises(InvalidInput):
        request_preview(actor=act("member"), kind=NAME, project=cast.project, payload={})
    with pytest.raises(Forbidden):
        request_preview(actor=act("viewer"), kind=NAME, project=cast.project, payload={"devices": 2})
    with pytest.raises(NotFound):
        request_preview(actor=act("outsider"), kind=NAME, project=cast.project, payload={"devices": 2})


def test_the_decider_sees_the_same_checks(ask, act):
    request = ask(2)
    assert request_outlook(actor=act("lead"), request=request).devices == 2
    with pytest.raises(NotFound):
        request_outlook(actor=act("outsider"), request=request)


@pytest.mark.parametrize("state", list(RequestState))
def test_acts_follow_the_table(ask, act, state):
    request = ask()
    with unscoped("a test sets the scene"):
        Request.objects.filter(pk=request.pk).update(state=state.value)
    request.state = state.value
    decider, author = acts_on(actor=act("lead"), request=request), acts_on(actor=act("member"), request=request)
    assert (RequestAct.APPROVE in decider) == may_move(state, RequestState.APPROVED)
    assert (RequestAct.DENY in decider) == may_move(state, RequestState.DENIED)
    assert (RequestAct.REVOKE in decider) == may_move(state, RequestState.REVOKED)
    assert author == ({RequestAct.WITHDRAW} if may_move(state, RequestState.WITHDRAWN) else set())
    assert acts_on(actor=act("viewer"), request=request) == acts_on(actor=act("outsider"), request=request) == set()


@pytest.mark.parametrize(("name", "verdict"), list(product(["lead", "member", "viewer", "org_admin"], ["approve", "deny"])))
def test_what_is_offered_works_and_what_is_not_is_refused(ask, act, name, verdict):
    request = ask()
    offered = RequestAct(verdict) in acts_on(actor=act(name), request=request)
    if offered:
        request_decide(actor=act(name), public_id=request.public_id, verdict=verdict, reason="r")
    else:
        with pytest.raises(SlipwayError):
            request_decide(actor=act(name), public_id=request.public_id, verdict=verdict, reason="r")


def test_a_row_of_a_kind_that_is_gone_is_listed_and_offers_nothing(ask, act):
    request = ask()
    with unscoped("a test sets the scene"):
        Request.objects.filter(pk=request.pk).update(kind="retired")
    (row,) = request_list(actor=act("lead"))
    assert acts_on(actor=act("lead"), request=row) == set()
    assert not inbox_list(actor=act("lead"))


def test_nothing_is_offered_past_the_end(ask, act):
    with clock.frozen(clock.now()) as frozen:
        request = ask()
        frozen.advance(UNDECIDED_FOR)
        assert acts_on(actor=act("lead"), request=request) == set()
        with pytest.raises(Conflict):
            request_decide(actor=act("lead"), public_id=request.public_id, verdict="deny", reason="r")


def test_lists_cost_the_same_with_2_and_with_20(ask, act, django_assert_num_queries):
    def read():
        rows = list(request_list(actor=act("viewer")))
        return [(row.project.organization.name, row.requester.name, len(row.decisions.all())) for row in rows]

    for count in (2, 18):
        for _ in range(count):
            request_decide(actor=act("lead"), public_id=ask().public_id, verdict="approve")
        with django_assert_num_queries(2):
            read()
