"""C35: many objects changed at once, or one removed, by browser and by token: a row for each, with who, what and before."""

import pytest

from fleet.models import Grant
from portal.approvals.services.decisions import requests_decide
from portal.approvals.services.requests import request_submit
from portal.audit.domain.actors import Channel
from portal.audit.models import AuditEvent
from portal.tenancy.selectors.people import actor_for
from portal.tenancy.services.memberships import membership_remove
from portal.tenancy.services.tokens import token_create, token_revoke
from routing.services.keys import key_create, key_revoke
from tests.cast import actor_of, make_grant, make_profile


@pytest.fixture(params=[Channel.BROWSER, Channel.API])
def through(request):
    """``through(user)``: the user's actor by this channel; by token it is a real one."""

    def actor(user):
        if request.param is Channel.BROWSER:
            return actor_of(user, Channel.BROWSER, request_id="click-1")
        token, _ = token_create(actor=actor_of(user), name="script", scopes=["write"], expires_in_days=1)
        return actor_for(user, Channel.API, token=token, request_id="click-1")

    return actor


def rows(action):
    return list(AuditEvent.objects.filter(action=action).order_by("pk"))


def check_who(events, actor):
    for event in events:
        assert (event.actor_kind, event.actor_id) == ("user", actor.id)
        assert (event.channel, event.token_id, event.request_id) == (actor.channel.value, actor.token_id, "click-1")
        assert bool(event.token_id) == (actor.channel is Channel.API)


def test_c35_a_bulk_approval_of_25_requests(cast, through):
    profiles = [make_profile() for _ in range(25)]
    requests = [
        request_submit(
            actor=actor_of(cast.member),
            kind="grant",
            project=cast.project,
            payload={"profile": profile.name, "devices": 2},
        )
        for profile in profiles
    ]
    actor = through(cast.org_admin)
    outcomes = requests_decide(
        actor=actor, public_ids=[request.public_id for request in requests], verdict="approve", reason="quarter 1"
    )
    assert all(outcome.error is None for outcome in outcomes)
    approvals = rows("request.approve")
    assert [event.object_id for event in approvals] == [request.public_id for request in requests]
    for event in approvals:
        assert (event.before, event.after["state"], event.reason) == ({"state": "submitted"}, "approved", "quarter 1")
        assert event.after["made_kind"] == "grant"
        assert event.project_id == cast.project.public_id
    check_who(approvals, actor)
    made = rows("grant.create")
    assert len({event.object_id for event in made}) == 25
    check_who(made, actor)


def test_c35_a_bulk_edit_of_quotas(cast, through):
    grants = [make_grant(cast.project, make_profile(), devices=8) for _ in range(5)]
    requests = [
        request_submit(
            actor=actor_of(cast.member),
            kind="grant",
            project=cast.project,
            payload={"profile": grant.profile.name, "devices": 3},
        )
        for grant in grants
    ]
    actor = through(cast.org_admin)
    requests_decide(actor=actor, public_ids=[request.public_id for request in requests], verdict="approve")
    assert {grant.devices for grant in Grant.objects.for_project(cast.project)} == {3}
    changes = rows("grant.change")
    assert sorted(event.object_id for event in changes) == sorted(grant.public_id for grant in grants)
    assert {(event.before["devices"], event.after["devices"]) for event in changes} == {(8, 3)}
    check_who(changes, actor)


def test_c35_a_key_that_ends_keeps_its_last_values_and_no_secret(cast, through):
    actor = through(cast.lead)
    key, secret = key_create(actor=actor, project=cast.project, name="notebook")
    key_revoke(actor=actor, public_id=key.public_id)
    events = [event for event in AuditEvent.objects.order_by("pk") if event.object_id == key.public_id]
    assert len(events) == 2
    check_who(events, actor)
    assert events[1].before["name"] == "notebook"
    for event in AuditEvent.objects.values():
        assert secret not in str(event)
        assert key.secret_sha256 not in str(event)


def test_c35_a_membership_that_is_deleted_keeps_its_last_values(cast, through):
    actor = through(cast.lead)
    membership_remove(actor=actor, project=cast.project, user_public_id=cast.member.public_id)
    (event,) = rows("membership.remove")
    assert (event.object_id, event.before, event.after) == (cast.member.public_id, {"role": "member"}, None)
    check_who([event], actor)


def test_c35_a_token_that_ends_is_named_and_never_shown(cast, through):
    actor = through(cast.member)
    token, secret = token_create(actor=actor, name="laptop", scopes=["read"], expires_in_days=3)
    token_revoke(actor=actor, public_id=token.public_id)
    (event,) = rows("token.revoke")
    assert event.object_id == token.public_id
    assert event.before["name"] == "laptop"
    check_who([event], actor)
    for row in AuditEvent.objects.values():
        assert secret not in str(row)
        assert token.secret_sha256 not in str(row)


def test_rows_hold_ids_and_no_address(cast, through):
    membership_remove(actor=through(cast.lead), project=cast.project, user_public_id=cast.member.public_id)
    for row in AuditEvent.objects.values():
        assert "@" not in str(row)
