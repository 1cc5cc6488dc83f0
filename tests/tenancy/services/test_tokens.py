from datetime import timedelta

import pytest

from portal.audit.domain.actors import Channel, Scope
from portal.audit.models import AuditEvent
from portal.kernel import clock
from portal.kernel.errors import Forbidden, InvalidInput, NotFound
from portal.tenancy.models import ApiToken, User
from portal.tenancy.selectors.people import actor_for
from portal.tenancy.selectors.tokens import token_authenticate, token_list
from portal.tenancy.services.tokens import token_create, token_revoke, token_used


@pytest.fixture
def made(cast, act):
    return token_create(actor=act("member"), name="laptop", scopes=["write"], expires_in_days=30)


def test_the_secret_finds_its_token_and_is_kept_nowhere(cast, made):
    token, secret = made
    found = token_authenticate(secret)
    assert found == token
    assert found.user == cast.member
    row = ApiToken.objects.filter(pk=token.pk).values().get()
    assert secret not in str(row)
    for event in AuditEvent.objects.values():
        assert secret not in str(event)
        assert token.secret_sha256 not in str(event)


def test_write_brings_read(made):
    assert made[0].scopes == ["read", "write"]


@pytest.mark.parametrize("wrong", ["", "slp_", "slp_aaaaaaaa_" + "x" * 43, "Bearer x"])
def test_a_wrong_secret_finds_nothing(made, wrong):
    assert token_authenticate(wrong) is None


def test_the_right_prefix_alone_opens_nothing(made):
    _, secret = made
    changed = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    assert token_authenticate(changed) is None


def test_it_ends_at_its_instant(made):
    token, secret = made
    with clock.frozen(token.expires_at - timedelta(microseconds=1)):
        assert token_authenticate(secret) == token
    with clock.frozen(token.expires_at):
        assert token_authenticate(secret) is None


def test_a_revoked_one_is_refused_at_once_and_revoking_repeats(made, act):
    token, secret = made
    for _ in range(2):
        token_revoke(actor=act("member"), public_id=token.public_id)
    assert token_authenticate(secret) is None
    event = AuditEvent.objects.get(action="token.revoke")
    assert event.before["revoked_at"] is None
    assert event.after["revoked_at"]


def test_a_switched_off_person_has_no_token(made, cast):
    User.objects.filter(pk=cast.member.pk).update(is_active=False)
    assert token_authenticate(made[1]) is None


def test_tokens_are_their_owners_alone(made, act):
    token, _ = made
    assert list(token_list(actor=act("member"))) == [token]
    for name in ("lead", "org_admin", "platform_admin", "outsider"):
        assert not token_list(actor=act(name)).exists()
        with pytest.raises(NotFound):
            token_revoke(actor=act(name), public_id=token.public_id)


def test_a_token_acts_as_its_owner_with_its_own_scopes(cast, act):
    token, _ = token_create(actor=act("member"), name="reader", scopes=[Scope.READ], expires_in_days=1)
    actor = actor_for(cast.member, Channel.API, token=token, request_id="r1")
    assert (actor.id, actor.token_id, actor.request_id) == (cast.member.public_id, token.public_id, "r1")
    assert actor.scopes == {Scope.READ}


def test_a_reading_token_makes_no_token_and_ends_only_itself(cast, act, made):
    reader, _ = token_create(actor=act("member"), name="reader", scopes=["read"], expires_in_days=1)
    actor = actor_for(cast.member, Channel.API, token=reader)
    with pytest.raises(Forbidden):
        token_create(actor=actor, name="more", scopes=["write"], expires_in_days=300)
    with pytest.raises(Forbidden):
        token_revoke(actor=actor, public_id=made[0].public_id)
    assert token_revoke(actor=actor, public_id=reader.public_id).revoked_at is not None


def test_a_token_made_by_a_token_does_not_outlive_it(cast, made):
    actor = actor_for(cast.member, Channel.API, token=made[0])
    child, _ = token_create(actor=actor, name="child", scopes=["read"], expires_in_days=365)
    assert child.expires_at == made[0].expires_at


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["admin"]}, "scopes"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": 366}, "expires_in_days"),
    ],
)
def test_bad_input_names_its_field(cast, act, changes, field):
    with pytest.raises(InvalidInput) as caught:
        token_create(actor=act("member"), **{"name": "n", "scopes": ["read"], "expires_in_days": 1, **changes})
    assert list(caught.value.fields) == [field]


def test_last_use_is_kept_to_the_minute(made, django_assert_num_queries):
    token, _ = made
    with clock.frozen(clock.now()) as frozen:
        token_used(token)
        first = frozen.at
        frozen.advance(timedelta(seconds=59))
        with django_assert_num_queries(1):
            token_used(token)
        assert ApiToken.objects.get(pk=token.pk).last_used_at == first
        frozen.advance(timedelta(seconds=2))
        token_used(token)
        assert ApiToken.objects.get(pk=token.pk).last_used_at == frozen.at
