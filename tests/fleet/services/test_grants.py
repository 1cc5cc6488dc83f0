"""The kind ``grant`` through the request machine, and grants over time."""

from datetime import timedelta

import pytest
from django.db import transaction

from fleet import consumers
from fleet.domain.grant_states import LIVE, GrantState, may_move
from fleet.models import Grant, Node, QuotaHold
from fleet.services.grants import EXPIRING_BEFORE, grants_expire
from fleet.services.parts.grants import grant_move
from fleet.services.parts.holds import hold_raise
from portal.approvals.domain.previews import CheckVerdict
from portal.approvals.models import Request
from portal.approvals.selectors.requests import request_outlook, request_preview
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_revoke, request_submit, requests_expire
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel import clock
from portal.kernel.errors import Conflict, Forbidden, InvalidInput
from portal.tenancy.models import unscoped
from portal.tenancy.services.organizations import project_close
from tests.cast import make_cluster, make_grant, make_hold, make_profile

LOOP = Actor.service("test")


@pytest.fixture
def profile(db):
    return make_profile("h100")


@pytest.fixture
def stopped(monkeypatch):
    """What was told to stop, as (public id, reason)."""
    calls = []
    monkeypatch.setitem(
        consumers._stops, "deployment", lambda *, actor, public_id, reason: calls.append((public_id, reason))
    )
    return calls


@pytest.fixture
def granted(cast, act, profile):
    """``granted(devices, **fields)``: asked by the lead, approved by the organization's administrator; the request."""

    def make(devices=8, **fields):
        request = request_submit(
            actor=act("lead"),
            kind="grant",
            project=cast.project,
            payload={"profile": profile.name, "devices": devices, **fields},
        )
        return request_decide(actor=act("org_admin"), public_id=request.public_id, verdict="approve")

    return make


def grants(cast):
    return list(Grant.objects.for_project(cast.project).order_by("pk"))


def fresh(request):
    with unscoped("a test looks"):
        return Request.objects.get(pk=request.pk)


def test_an_approved_grant_is_there_at_once(cast, granted, profile):
    request = granted(4, gpu_hours_per_month=720)
    (grant,) = grants(cast)
    assert (request.state, request.made_kind, request.made_id) == ("fulfilled", "grant", grant.public_id)
    assert (grant.profile, grant.devices, grant.gpu_hours_per_month, grant.state) == (profile, 4, 720, "active")
    assert grant.approval_id == request.public_id
    assert AuditEvent.objects.get(action="grant.create").after["devices"] == 4


@pytest.mark.parametrize("name", ["lead", "other_lead", "member", "viewer", "auditor"])
def test_only_an_organization_administrator_decides_it(cast, act, profile, name):
    request = request_submit(
        actor=act("member"), kind="grant", project=cast.project, payload={"profile": "h100", "devices": 1}
    )
    with pytest.raises(Forbidden):
        request_decide(actor=act(name), public_id=request.public_id, verdict="approve")


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"profile": "nope", "devices": 1}, "profile"),
        ({"profile": "retired", "devices": 1}, "profile"),
        ({"profile": "h100", "devices": 0}, "devices"),
        ({"profile": "h100", "devices": 1, "ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({}, "profile"),
    ],
)
def test_bad_asks_name_their_field(cast, act, profile, payload, field):
    make_profile("retired", enabled=False)
    with pytest.raises(InvalidInput) as caught:
        request_submit(actor=act("member"), kind="grant", project=cast.project, payload=payload)
    assert field in caught.value.fields


def test_a_second_approval_changes_the_one_grant(cast, granted, stopped):
    first = granted(4)
    (grant,) = grants(cast)
    make_hold(grant, "dep_a", 3)
    second = granted(2)
    assert [(g.pk, g.devices, g.approval_id) for g in grants(cast)] == [(grant.pk, 2, second.public_id)]
    assert second.made_id == first.made_id
    change = AuditEvent.objects.get(action="grant.change")
    assert (change.before["devices"], change.after["devices"]) == (4, 2)
    assert stopped == []
    assert QuotaHold.objects.for_project(cast.project).get().devices == 3


def test_revoking_an_older_approval_leaves_the_newer_grant(cast, act, granted, stopped):
    first, second = granted(4), granted(8)
    request_revoke(actor=act("org_admin"), public_id=first.public_id, reason="superseded")
    assert [(g.state, g.devices) for g in grants(cast)] == [("active", 8)]
    request_revoke(actor=act("org_admin"), public_id=second.public_id, reason="over")
    assert [g.state for g in grants(cast)] == ["revoked"]


def test_c37_revoking_a_grant_stops_what_holds_its_devices_and_keeps_the_holds(cast, act, granted, stopped):
    request = granted(4)
    (grant,) = grants(cast)
    make_hold(grant, "dep_a", 1)
    make_hold(grant, "dep_b", 1)
    make_hold(grant, "other_1", 1, consumer_kind="unregistered")
    request_revoke(actor=act("org_admin"), public_id=request.public_id, reason="Not used.")
    assert stopped == [("dep_a", "Not used."), ("dep_b", "Not used.")]
    assert QuotaHold.objects.for_project(cast.project).filter(ended_at=None).count() == 3


def test_c37_denying_a_grant_after_it_was_active_ends_it_too(cast, act, granted, stopped):
    request = granted(4)
    make_hold(grants(cast)[0], "dep_a", 1)
    request_decide(actor=act("org_admin"), public_id=request.public_id, verdict="deny", reason="no", version=request.version)
    assert [g.state for g in grants(cast)] == ["revoked"]
    assert stopped == [("dep_a", "no")]


def test_after_a_revocation_a_new_grant_is_a_new_row(cast, act, granted):
    request_revoke(actor=act("org_admin"), public_id=granted(4).public_id, reason="over")
    granted(2)
    assert [(g.state, g.devices) for g in grants(cast)] == [("revoked", 4), ("active", 2)]


def test_c37_its_end_date_ends_it_by_either_sweep_alone(cast, act, granted, stopped):
    for sweep in (grants_expire, requests_expire):
        with clock.frozen(clock.now()) as frozen:
            end = frozen.at + timedelta(days=30)
            granted(4, ends_at=end.isoformat())
            grant = grants(cast)[-1]
            make_hold(grant, f"dep_{grant.pk}", 1)
            frozen.at = end
            assert sweep(frozen.at) >= 1
            grant.refresh_from_db(fields=["state"])
            assert grant.state == "expired"
            assert stopped[-1][0] == f"dep_{grant.pk}"
            grants_expire(frozen.at)
            requests_expire(frozen.at)
            assert Request.objects.for_project(cast.project).latest("pk").state == "expired"
    assert len(stopped) == 2


def test_a_grant_near_its_end_says_so_and_a_renewal_brings_it_back(cast, granted):
    with clock.frozen(clock.now()) as frozen:
        end = frozen.at + timedelta(days=30)
        old = granted(4, ends_at=end.isoformat())
        frozen.at = end - EXPIRING_BEFORE - timedelta(microseconds=1)
        assert grants_expire(frozen.at) == 0
        frozen.at = end - EXPIRING_BEFORE
        assert grants_expire(frozen.at) == 1
        assert grants_expire(frozen.at) == 0
        assert grants(cast)[0].state == "expiring"
        granted(4, ends_at=(end + timedelta(days=90)).isoformat())
        assert grants(cast)[0].state == "active"
        frozen.at = end
        requests_expire(frozen.at)
        assert fresh(old).state == "expired"
        assert grants(cast)[0].state == "active"


def test_a_change_whose_end_came_while_it_waited_is_not_approved_and_stops_nothing(cast, act, profile, stopped):
    with clock.frozen(clock.now()) as frozen:
        grant = make_grant(cast.project, profile, devices=8)
        make_hold(grant, "dep_1", 4)
        end = frozen.at + timedelta(days=2)
        asked = request_submit(
            actor=act("lead"),
            kind="grant",
            project=cast.project,
            payload={"profile": profile.name, "devices": 9, "ends_at": end.isoformat()},
        )
        frozen.at = end
        with pytest.raises(Conflict, match="has passed"):
            request_decide(actor=act("org_admin"), public_id=asked.public_id, verdict="approve")
        (refused,) = request_outlook(actor=act("org_admin"), request=asked).refusals
        assert refused.field == "ends_at"
        grants_expire(frozen.at)
    (standing,) = grants(cast)
    assert (fresh(asked).state, standing.devices, standing.ends_at) == ("submitted", 8, grant.ends_at)
    assert stopped == []


def test_one_that_cannot_move_holds_no_other_up(cast, profile, monkeypatch):
    with clock.frozen(clock.now()) as frozen:
        end = frozen.at + timedelta(days=30)
        stuck, other = (make_grant(project, profile, ends_at=end) for project in (cast.project, cast.other_project))
        make_hold(stuck, "dep_a", 1)

        def refuse(*, actor, public_id, reason):
            raise Conflict("not now")

        monkeypatch.setitem(consumers._stops, "deployment", refuse)
        assert grants_expire(end) == 1
        stuck.refresh_from_db(fields=["state"])
        other.refresh_from_db(fields=["state"])
        assert (stuck.state, other.state) == ("active", "expired")


def test_a_later_start_waits_approved_until_it_comes(cast, granted):
    with clock.frozen(clock.now()) as frozen:
        start = frozen.at + timedelta(days=3)
        request = granted(4, starts_at=start.isoformat())
        assert (request.state, grants(cast)[0].state) == ("approved", "pending")
        assert grants_expire(start - timedelta(microseconds=1)) == 0
        frozen.at = start
        assert grants_expire(start) == 1
    assert (fresh(request).state, grants(cast)[0].state) == ("fulfilled", "active")


def test_a_later_start_beside_a_standing_grant_is_refused_at_once(cast, act, granted):
    granted(4)
    later = (clock.now() + timedelta(days=3)).isoformat()
    with pytest.raises(InvalidInput) as caught:
        granted(8, starts_at=later)
    assert list(caught.value.fields) == ["starts_at"]


def test_a_closing_project_closes_its_grants_and_stops_their_consumers(cast, act, granted, stopped):
    granted(4)
    make_hold(grants(cast)[0], "dep_a", 1)
    project_close(actor=act("org_admin"), public_id=cast.project.public_id)
    assert [g.state for g in grants(cast)] == ["closed"]
    assert [public_id for public_id, _ in stopped] == ["dep_a"]


@pytest.mark.parametrize("old", list(GrantState))
@pytest.mark.parametrize("new", list(GrantState))
def test_c37_the_writer_of_grants_walks_every_pair(cast, profile, stopped, old, new):
    grant = make_grant(cast.project, profile, state=old.value)
    make_hold(grant, "dep_a", 1)
    if may_move(old, new):
        with transaction.atomic():
            assert grant_move(actor=LOOP, grant=grant, to=new, reason="why") is True
        assert grants(cast)[0].state == new
        assert AuditEvent.objects.count() == 1
        assert bool(stopped) == (new not in LIVE)
    else:
        with pytest.raises(Conflict), transaction.atomic():
            grant_move(actor=LOOP, grant=grant, to=new, reason="why")
        assert grants(cast)[0].state == old
        assert not AuditEvent.objects.exists()


def test_the_preview_says_what_stands_against_it(cast, act, profile):
    make_grant(cast.other_project, profile, devices=6)
    preview = request_preview(
        actor=act("member"), kind="grant", project=cast.project, payload={"profile": "h100", "devices": 4}
    )
    assert preview.devices == 4
    capacity = next(check for check in preview.checks if check.name == "capacity")
    assert capacity.verdict is CheckVerdict.UNKNOWN
    assert "6" in capacity.text
    assert dict(preview.facts)["Cost"] == "unknown: no rate set"
    assert dict(preview.facts)["GPU-hours a month, in full use"] == "2,920"
    assert dict(preview.facts)["Now granted"] == "nothing"


@pytest.mark.parametrize(("devices", "verdict"), [(10, CheckVerdict.OK), (11, CheckVerdict.WARN)])
def test_q4_promises_stand_beside_the_real_cards(cast, act, profile, devices, verdict):
    cluster = make_cluster(reachable=True)
    for number in range(2):
        Node.objects.create(
            cluster=cluster,
            uid=f"node-{number}",
            name=f"node-{number}",
            labels=profile.node_selector,
            capacity={profile.resource_name: "8"},
            allocatable={profile.resource_name: "8"},
            ready=True,
            resource_version="1",
            observed_at=clock.now(),
        )
    make_grant(cast.other_project, profile, devices=6)
    make_grant(cast.project, profile, devices=2)
    preview = request_preview(
        actor=act("member"), kind="grant", project=cast.project, payload={"profile": "h100", "devices": devices}
    )
    capacity = next(check for check in preview.checks if check.name == "capacity")
    assert capacity.verdict is verdict
    assert capacity.text == (
        f"16 devices of {profile.title} exist, 16 are free now; others were promised 6, with this it would be {6 + devices}."
    )


def test_the_preview_of_less_than_is_held_warns(cast, act, profile, granted):
    granted(4)
    with transaction.atomic():
        hold_raise(actor=LOOP, grant_id=grants(cast)[0].pk, consumer_kind="deployment", consumer_id="dep_a", devices=3)
    preview = request_preview(
        actor=act("member"), kind="grant", project=cast.project, payload={"profile": "h100", "devices": 2}
    )
    held = next(check for check in preview.checks if check.name == "held")
    assert (held.verdict, held.field) == (CheckVerdict.WARN, "devices")
    assert "3 devices" in held.text
