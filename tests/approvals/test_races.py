"""People, sweeps and loops at the same time, on real Postgres with real threads (contract Q1, Q5; cases C35, C37)."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from fleet.models import Grant, QuotaHold
from fleet.services.grants import grants_expire
from fleet.services.parts.holds import hold_end, hold_lower, hold_raise
from portal.approvals import kinds
from portal.approvals.models import Decision, Request
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.parts.outcomes import request_fulfilled
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
from portal.kernel.errors import Conflict, QuotaExceeded
from portal.tenancy.models import unscoped
from portal.tenancy.services.organizations import project_close, project_create
from tests.approvals.kind import NAME, Toy
from tests.cast import actor_of, make_cast, make_grant, make_profile
from tests.together import all_at_once

pytestmark = pytest.mark.django_db(transaction=True)
LOOP = Actor.service("loop")


@pytest.fixture
def people():
    return make_cast()


@pytest.fixture
def toy(monkeypatch):
    toy = Toy()
    monkeypatch.setitem(kinds._kinds, NAME, toy.as_kind())
    return toy


@pytest.fixture
def grant(people):
    return make_grant(people.project, make_profile(), devices=8)


def ask(people, grant=None, devices=1):
    payload = {"devices": devices, **({"grant": grant.public_id} if grant else {})}
    return request_submit(actor=actor_of(people.member), kind=NAME, project=people.project, payload=payload)


def approve(user, request):
    return lambda: request_decide(actor=actor_of(user), public_id=request.public_id, verdict="approve")


def held(grant):
    with unscoped("a test looks"):
        return sum(QuotaHold.objects.filter(grant=grant, ended_at=None).values_list("devices", flat=True))


def state_of(request):
    with unscoped("a test looks"):
        return Request.objects.get(pk=request.pk).state


def test_q5_race_50_approvals_of_one_device_against_8_free_admit_exactly_8(people, toy, grant):
    requests = [ask(people, grant) for _ in range(50)]
    leads = (people.lead, people.other_lead, people.org_admin)
    results = all_at_once([approve(leads[number % 3], request) for number, request in enumerate(requests)])
    assert sum(isinstance(result, Request) for result in results) == 8
    assert sum(isinstance(result, QuotaExceeded) for result in results) == 42
    assert held(grant) == 8
    assert Counter(map(state_of, requests)) == {"approved": 8, "submitted": 42}
    assert Decision.objects.count() == 8
    for action in ("request.approve", "hold.raise"):
        assert AuditEvent.objects.filter(action=action).count() == 8
    assert len(toy.events) == 8 or Counter(toy.events).most_common(1)[0][1] == 1


def test_q5_race_of_uneven_sizes_never_passes_the_grant(people, toy, grant):
    requests = [ask(people, grant, devices=1 + number % 4) for number in range(30)]
    all_at_once([approve(people.lead, request) for request in requests])
    approved = [request for request in requests if state_of(request) == "approved"]
    assert held(grant) == sum(request.payload["devices"] for request in approved) <= 8
    left = 8 - held(grant)
    refused = [request.payload["devices"] for request in requests if request not in approved]
    assert all(devices > left for devices in refused)


def test_race_of_50_clicks_on_one_request_decides_once(people, toy, grant):
    request = ask(people, grant)
    leads = (people.lead, people.other_lead, people.org_admin)
    results = all_at_once([approve(leads[number % 3], request) for number in range(50)])
    assert all(isinstance(result, Request) and result.state == "approved" for result in results)
    assert held(grant) == 1
    assert toy.events == [("fulfil", request.public_id)]
    assert Decision.objects.count() == 1
    assert AuditEvent.objects.filter(action="request.approve").count() == 1


@pytest.mark.parametrize("round_", range(5))
def test_race_of_approve_and_deny_ends_as_the_first_said(people, toy, grant, round_):
    request = ask(people, grant)
    deny = lambda: request_decide(  # noqa: E731
        actor=actor_of(people.other_lead), public_id=request.public_id, verdict="deny", reason="no", version=1
    )
    approved, denied = all_at_once([approve(people.lead, request), deny])
    winner = state_of(request)
    assert winner in {"approved", "denied"}
    assert isinstance(approved, Request) == (winner == "approved")
    assert isinstance(denied, Request) == (winner == "denied")
    assert held(grant) == (1 if winner == "approved" else 0)
    assert Decision.objects.count() == 1


@pytest.mark.parametrize("round_", range(5))
def test_race_of_approve_and_withdraw_has_one_winner(people, toy, grant, round_):
    request = ask(people, grant)
    approved, withdrawn = all_at_once(
        [
            approve(people.lead, request),
            lambda: request_withdraw(actor=actor_of(people.member), public_id=request.public_id),
        ]
    )
    winner = state_of(request)
    assert winner in {"approved", "withdrawn"}
    assert isinstance(approved, Conflict) == (winner == "withdrawn")
    assert isinstance(withdrawn, Conflict) == (winner == "approved")
    assert held(grant) == (1 if winner == "approved" else 0)


def test_race_of_sweeps_ends_each_request_once(people, toy, grant):
    toy.expires_at = clock.now() + timedelta(days=1)
    decided = [ask(people, grant) for _ in range(5)]
    for request in decided:
        approve(people.lead, request)()
    waiting = [ask(people) for _ in range(5)]
    late = clock.now() + UNDECIDED_FOR + timedelta(days=1)
    counts = all_at_once([lambda: requests_expire(late)] * 8)
    counts.append(requests_expire(late))
    assert sum(counts) == 10
    assert {state_of(request) for request in (*decided, *waiting)} == {"expired"}
    assert sorted(event for event in toy.events if event[0] == "revoke") == sorted(
        ("revoke", request.public_id) for request in decided
    )
    assert AuditEvent.objects.filter(action="request.expire").count() == 10
    assert held(grant) == 0


@pytest.mark.parametrize("round_", range(5))
def test_race_of_a_revocation_and_the_loop_that_saw_it_true_ends_revoked_without_a_deadlock(people, toy, grant, round_):
    request = ask(people, grant)
    approve(people.lead, request)()

    def loop_records():
        with transaction.atomic():
            list(Grant.objects.for_project(people.project).select_for_update().filter(pk=grant.pk))
            return request_fulfilled(actor=LOOP, public_id=request.public_id)

    all_at_once(
        [
            lambda: request_revoke(actor=actor_of(people.lead), public_id=request.public_id, reason="over"),
            *[loop_records] * 4,
        ]
    )
    assert state_of(request) == "revoked"
    assert held(grant) == 0


def test_race_of_holds_that_rise_and_fall_never_passes_the_grant(people, grant):
    def cycle(number):
        def act():
            for devices in (1, 3, 2):
                with transaction.atomic():
                    hold_raise(
                        actor=LOOP,
                        grant_id=grant.pk,
                        consumer_kind="deployment",
                        consumer_id=f"dep_{number}",
                        devices=devices,
                    )
                assert held(grant) <= 8
                with transaction.atomic():
                    hold_lower(actor=LOOP, consumer_kind="deployment", consumer_id=f"dep_{number}", devices=1)
            with transaction.atomic():
                hold_end(actor=LOOP, consumer_kind="deployment", consumer_id=f"dep_{number}")

        return act

    results = all_at_once([cycle(number) for number in range(20)])
    assert all(result is None or isinstance(result, QuotaExceeded) for result in results)
    totals = Counter()
    for event in AuditEvent.objects.order_by("pk"):
        totals[event.object_id] += event.after["devices"] - event.before["devices"]
    assert sum(totals.values()) == held(grant)


def test_race_of_two_grants_of_one_profile_leaves_one_live_grant(people):
    make_profile("h100")
    requests = [
        request_submit(
            actor=actor_of(people.lead),
            kind="grant",
            project=people.project,
            payload={"profile": "h100", "devices": devices},
        )
        for devices in (2, 4, 8)
    ]
    results = all_at_once([approve(people.org_admin, request) for request in requests])
    with unscoped("a test looks"):
        (grant,) = Grant.objects.filter(state="active")
    decided = [result for result in results if isinstance(result, Request)]
    assert decided
    assert all(isinstance(result, (Request, Conflict)) for result in results)
    assert grant.approval_id in {request.public_id for request in decided}
    assert [state_of(request) for request in requests].count("fulfilled") == len(decided)


def test_race_of_two_sweeps_expires_a_grant_once(people, grant):
    end = clock.now() + timedelta(days=1)
    with unscoped("a test sets the scene"):
        Grant.objects.filter(pk=grant.pk).update(ends_at=end)
    counts = all_at_once([lambda: grants_expire(end)] * 8)
    assert sum(counts) == 1
    assert AuditEvent.objects.filter(action="grant.expire").count() == 1


@pytest.mark.parametrize("round_", range(3))
def test_race_of_a_closing_project_and_approvals_leaves_nothing_running(people, toy, grant, round_):
    requests = [ask(people, grant) for _ in range(6)]
    all_at_once(
        [
            lambda: project_close(actor=actor_of(people.org_admin), public_id=people.project.public_id),
            *[approve(people.lead, request) for request in requests],
        ]
    )
    assert {state_of(request) for request in requests} <= {"approved", "withdrawn"}
    assert [request for request in requests if state_of(request) == "submitted"] == []
    with unscoped("a test looks"):
        assert Grant.objects.get(pk=grant.pk).state == "closed"


def test_race_of_projects_with_one_slug_makes_one(people):
    results = all_at_once(
        [
            lambda: project_create(actor=actor_of(people.org_admin), organization=people.organization, name="Wave")
            for _ in range(8)
        ]
    )
    assert sum(not isinstance(result, Conflict) for result in results) == 1
    assert AuditEvent.objects.filter(action="project.create").count() == 1
