"""Who makes and ends keys, and what of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import serializers

from portal.audit.domain.actors import Actor, Channel, Scope
from portal.audit.models import AuditEvent
from portal.kernel.clock import frozen, now
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from portal.tenancy.models import ProjectState, unscoped
from routing.domain.keys import LIFETIME_DAYS_MAX, digest
from routing.models import ApiKey
from routing.services.keys import key_create, key_revoke
from tests.cast import Cast, actor_of, make_member, make_user

Act = Callable[[str], Actor]


def count() -> int:
    with unscoped("a test counts"):
        return ApiKey.objects.count()


def test_only_the_digest_of_a_secret_is_kept(cast: Cast, act: Act) -> None:
    key, secret = key_create(actor=act("member"), project=cast.project, name="  note\n book ")
    assert (key.name, key.prefix, key.secret_sha256) == ("note book", secret[:12], digest(secret))
    assert key.expires_at is None
    with unscoped("a test looks at everything kept"):
        kept = serializers.serialize("json", [*ApiKey.objects.all(), *AuditEvent.objects.all()])
    assert secret not in kept
    assert secret[12:] not in kept


@pytest.mark.parametrize(
    ("who", "outcome"),
    [
        ("viewer", Forbidden),
        ("member", None),
        ("lead", None),
        ("org_admin", None),
        ("auditor", Forbidden),
        ("fleet_operator", NotFound),
        ("platform_admin", NotFound),
        ("outsider", NotFound),
    ],
)
def test_who_may_make_a_key(cast: Cast, act: Act, who: str, outcome: type[Exception] | None) -> None:
    if outcome is None:
        key_create(actor=act(who), project=cast.project, name="k")
        assert count() == 1
    else:
        with pytest.raises(outcome):
            key_create(actor=act(who), project=cast.project, name="k")
        assert count() == 0


@pytest.mark.parametrize(
    ("who", "outcome"),
    [
        ("viewer", Forbidden),
        ("other_member", Forbidden),
        ("member", None),
        ("lead", None),
        ("org_admin", None),
        ("auditor", Forbidden),
        ("fleet_operator", NotFound),
        ("outsider", NotFound),
    ],
)
def test_who_may_end_a_members_key(cast: Cast, act: Act, who: str, outcome: type[Exception] | None) -> None:
    key, _ = key_create(actor=act("member"), project=cast.project, name="k")
    if who == "other_member":
        other = make_user()
        make_member(cast.project, other)
        actor = actor_of(other)
    else:
        actor = act(who)
    if outcome is None:
        assert key_revoke(actor=actor, public_id=key.public_id).revoked_at is not None
    else:
        with pytest.raises(outcome):
            key_revoke(actor=actor, public_id=key.public_id)
        with unscoped("a test looks"):
            assert ApiKey.objects.get().revoked_at is None


def test_an_unknown_key_and_a_foreign_one_answer_alike(cast: Cast, act: Act) -> None:
    key, _ = key_create(actor=act("member"), project=cast.project, name="k")
    with pytest.raises(NotFound) as foreign:
        key_revoke(actor=act("outsider"), public_id=key.public_id)
    with pytest.raises(NotFound) as unknown:
        key_revoke(actor=act("outsider"), public_id="key_nobody")
    assert (foreign.value.detail, foreign.value.code) == (unknown.value.detail, unknown.value.code)


def test_ending_a_key_twice_is_ending_it_once(cast: Cast, act: Act) -> None:
    key, _ = key_create(actor=act("member"), project=cast.project, name="k")
    first = key_revoke(actor=act("member"), public_id=key.public_id).revoked_at
    assert key_revoke(actor=act("lead"), public_id=key.public_id).revoked_at == first
    assert AuditEvent.objects.filter(action="key.revoke").count() == 1


@pytest.mark.parametrize("who", ["member", "lead"])
def test_a_closed_project_makes_no_key_and_its_keys_can_still_be_ended(cast: Cast, act: Act, who: str) -> None:
    key, _ = key_create(actor=act("member"), project=cast.project, name="k")
    cast.project.state = ProjectState.CLOSED.value
    cast.project.save()
    with pytest.raises(Conflict):
        key_create(actor=act(who), project=cast.project, name="k")
    assert key_revoke(actor=act(who), public_id=key.public_id).revoked_at is not None


def test_a_read_only_token_makes_and_ends_no_key(cast: Cast, act: Act) -> None:
    key, _ = key_create(actor=act("lead"), project=cast.project, name="k")
    reader = actor_of(cast.lead, Channel.API, scopes=frozenset({Scope.READ}))
    with pytest.raises(Forbidden):
        key_create(actor=reader, project=cast.project, name="k")
    with pytest.raises(Forbidden):
        key_revoke(actor=reader, public_id=key.public_id)


@pytest.mark.parametrize(
    ("name", "days", "field"),
    [
        ("", None, "name"),
        ("   ", None, "name"),
        ("x" * 81, None, "name"),
        ("k", 0, "expires_in_days"),
        ("k", -1, "expires_in_days"),
        ("k", LIFETIME_DAYS_MAX + 1, "expires_in_days"),
    ],
)
def test_what_a_key_may_not_be_is_said_by_field(cast: Cast, act: Act, name: str, days: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        key_create(actor=act("member"), project=cast.project, name=name, expires_in_days=days)
    assert list(refused.value.fields) == [field]
    assert count() == 0


def test_a_key_expires_whole_days_after_it_was_made(cast: Cast, act: Act) -> None:
    with frozen(now()) as clock:
        key, _ = key_create(actor=act("member"), project=cast.project, name="k", expires_in_days=30)
        assert key.expires_at == clock.at + timedelta(days=30)


def test_c35_each_act_on_a_key_has_one_audit_row_with_who_and_how(cast: Cast) -> None:
    by_token = actor_of(cast.member, Channel.API, token_id="tok_1", request_id="req-1")
    key, secret = key_create(actor=by_token, project=cast.project, name="k")
    key_revoke(actor=actor_of(cast.lead), public_id=key.public_id, reason="leaked")
    made, ended = AuditEvent.objects.filter(object_id=key.public_id).order_by("id")
    assert (made.action, made.actor_id, made.channel) == ("key.create", cast.member.public_id, "api")
    assert (made.token_id, made.request_id, made.project_id) == ("tok_1", "req-1", cast.project.public_id)
    assert made.before is None
    assert (ended.action, ended.actor_id, ended.channel, ended.reason) == (
        "key.revoke",
        cast.lead.public_id,
        "browser",
        "leaked",
    )
    assert ended.before["revoked_at"] is None
    assert ended.after["revoked_at"] is not None
    assert secret not in str([made.after, ended.before, ended.after])
