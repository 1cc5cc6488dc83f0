import pytest

from fleet.models import QuotaHold
from portal.approvals.models import Decision, Request
from portal.approvals.services.decisions import request_decide, requests_decide
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaExceeded, Stale
from portal.tenancy.models import unscoped
from tests.cast import make_grant, make_profile


@pytest.fixture
def grant(cast):
    return make_grant(cast.project, make_profile(), devices=4)


def held(grant):
    return sum(QuotaHold.objects.for_project(grant.project).filter(ended_at=None).values_list("devices", flat=True))


def fresh(request):
    with unscoped("a test looks"):
        return Request.objects.get(pk=request.pk)


def test_approving_decides_holds_and_writes_in_one_go(cast, ask, act, toy, grant):
    request = ask(3, grant)
    decided = request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve", version=1)
    assert (decided.state, decided.made_kind, decided.made_id) == ("approved", "toy", request.public_id)
    assert fresh(request).version == decided.version == 2
    assert held(grant) == 3
    decision = Decision.objects.get(request=request)
    assert (decision.verdict, decision.decider, decision.stage) == ("approve", cast.lead, 1)
    assert AuditEvent.objects.get(action="request.approve").after == {
        "state": "approved",
        "made_kind": "toy",
        "made_id": request.public_id,
    }
    actions = AuditEvent.objects.exclude(action="request.submit").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["hold.raise", "request.approve"]


def test_a_kind_that_is_complete_at_once_is_fulfilled(ask, act, toy):
    toy.complete = True
    decided = request_decide(actor=act("lead"), public_id=ask().public_id, verdict="approve")
    assert decided.state == "fulfilled"
    assert fresh(decided).fulfilled_at is not None


def test_no_quota_left_leaves_it_submitted_and_nothing_written(ask, act, grant):
    request = ask(5, grant)
    before = AuditEvent.objects.count()
    with pytest.raises(QuotaExceeded, match="needs 5 devices; the grant has 4, others hold 0, 4 are free"):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    assert fresh(request).state == "submitted"
    assert held(grant) == 0
    assert AuditEvent.objects.count() == before
    assert not Decision.objects.exists()


def test_c37_a_second_approval_is_a_no_op_for_whoever_gives_it(ask, act, toy):
    request = ask()
    first = request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve", version=1)
    for name in ("lead", "other_lead", "org_admin"):
        again = request_decide(actor=act(name), public_id=request.public_id, verdict="approve", version=1)
        assert (again.state, again.version) == ("approved", first.version)
    assert toy.events == [("fulfil", request.public_id)]
    assert AuditEvent.objects.filter(action="request.approve").count() == 1
    assert Decision.objects.count() == 1


def test_a_second_denial_is_a_no_op_too(ask, act):
    request = ask()
    for name in ("lead", "other_lead"):
        request_decide(actor=act(name), public_id=request.public_id, verdict="deny", reason="no")
    assert fresh(request).state == "denied"
    assert Decision.objects.count() == 1


def test_approving_what_was_denied_is_a_conflict(ask, act):
    request = ask()
    request_decide(actor=act("lead"), public_id=request.public_id, verdict="deny", reason="no")
    with pytest.raises(Conflict, match="denied"):
        request_decide(actor=act("other_lead"), public_id=request.public_id, verdict="approve")


def test_two_who_answer_differently_at_once_do_not_undo_each_other(approved, act, toy):
    for version in (None, 1):
        with pytest.raises((Conflict, Stale)):
            request_decide(
                actor=act("other_lead"), public_id=approved.public_id, verdict="deny", reason="no", version=version
            )
    assert fresh(approved).state == "approved"
    assert toy.events == [("fulfil", approved.public_id)]


@pytest.mark.parametrize("fulfilled", [False, True])
def test_c37_denying_after_it_was_active_removes_the_workload(ask, act, toy, grant, fulfilled):
    toy.complete = fulfilled
    request = ask(2, grant)
    seen = request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    request_decide(
        actor=act("other_lead"), public_id=request.public_id, verdict="deny", reason="too much", version=seen.version
    )
    assert fresh(request).state == "denied"
    assert toy.events == [("fulfil", request.public_id), ("revoke", request.public_id)]
    assert held(grant) == 0
    assert [(d.stage, d.verdict) for d in Decision.objects.order_by("stage")] == [(1, "approve"), (2, "deny")]


def test_a_denial_says_why(ask, act):
    request = ask()
    with pytest.raises(InvalidInput) as caught:
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="deny", reason="  ")
    assert list(caught.value.fields) == ["reason"]
    assert fresh(request).state == "submitted"


def test_a_stale_decision_is_refused(ask, act):
    request = ask()
    with pytest.raises(Stale):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve", version=9)


def test_an_unknown_verdict_is_refused(ask, act):
    with pytest.raises(InvalidInput):
        request_decide(actor=act("lead"), public_id=ask().public_id, verdict="maybe")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("viewer", Forbidden),
        ("member", Forbidden),
        ("auditor", Forbidden),
        ("outsider", NotFound),
        ("fleet_operator", NotFound),
        ("platform_admin", NotFound),
    ],
)
def test_who_does_not_decide(ask, act, toy, name, error):
    request = ask(by="lead")
    for verdict in ("approve", "deny"):
        with pytest.raises(error):
            request_decide(actor=act(name), public_id=request.public_id, verdict=verdict, reason="r")
    assert toy.events == []


def test_nobody_decides_their_own_request(ask, act):
    request = ask(by="lead")
    with pytest.raises(Forbidden, match="own request") as caught:
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    assert caught.value.code == "own_request"
    request_decide(actor=act("other_lead"), public_id=request.public_id, verdict="approve")


def test_a_loop_decides_nothing(ask):
    with pytest.raises(Forbidden):
        request_decide(actor=Actor.service("loop"), public_id=ask().public_id, verdict="approve")


def test_ids_that_do_not_exist_and_foreign_ones_answer_alike(ask, act):
    details = set()
    for name, public_id in (("outsider", ask().public_id), ("lead", "req_nope"), ("lead", "")):
        with pytest.raises(NotFound) as caught:
            request_decide(actor=act(name), public_id=public_id, verdict="approve")
        details.add((caught.value.code, caught.value.detail))
    assert len(details) == 1


def test_bulk_decides_each_alone_and_says_what_became_of_each(ask, act, grant):
    requests = [ask(2, grant) for _ in range(3)]
    own = ask(by="lead")
    ids = [request.public_id for request in (*requests, own)]
    outcomes = requests_decide(actor=act("lead"), public_ids=[*ids, ids[0], "req_nope"], verdict="approve")
    assert [outcome.public_id for outcome in outcomes] == [*ids, "req_nope"]
    assert [type(outcome.error).__name__ for outcome in outcomes] == [
        "NoneType",
        "NoneType",
        "QuotaExceeded",
        "Forbidden",
        "NotFound",
    ]
    assert held(grant) == 4
    assert [fresh(request).state for request in requests] == ["approved", "approved", "submitted"]


def test_bulk_takes_the_versions_that_were_seen(ask, act):
    one, other = ask(), ask()
    outcomes = requests_decide(
        actor=act("lead"),
        public_ids=[one.public_id, other.public_id],
        verdict="approve",
        versions={one.public_id: 1, other.public_id: 5},
    )
    assert [outcome.error is None for outcome in outcomes] == [True, False]
    assert isinstance(outcomes[1].error, Stale)
