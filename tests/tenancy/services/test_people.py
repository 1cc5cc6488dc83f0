import pytest

from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import User
from portal.tenancy.selectors.people import names_of, user_get, user_list
from portal.tenancy.selectors.permissions import actor_may
from portal.tenancy.services.people import user_create, user_deactivate, user_role_set
from tests.cast import actor_of

GOOD = {"email": "ada@example.org", "name": "Ada Lovelace", "password": "analytical-engine-1843"}


def test_a_person_is_made_and_no_secret_or_address_is_audited(cast, act):
    user = user_create(actor=act("platform_admin"), **GOOD)
    assert user.check_password(GOOD["password"])
    event = AuditEvent.objects.get()
    assert (event.action, event.object_id) == ("user.create", user.public_id)
    assert GOOD["password"] not in str(event.after)
    assert "@" not in str(event.after)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"email": "nope"}, "email"),
        ({"email": ""}, "email"),
        ({"name": "  "}, "name"),
        ({"password": "short"}, "password"),
        ({"password": "123456789012345"}, "password"),
        ({"password": "ada@example.org"}, "password"),
        ({"password": "password1234"}, "password"),
        ({"platform_role": "root"}, "platform_role"),
    ],
)
def test_bad_input_names_its_field(cast, act, changes, field):
    with pytest.raises(InvalidInput) as caught:
        user_create(actor=act("platform_admin"), **{**GOOD, **changes})
    assert list(caught.value.fields) == [field]


def test_one_address_is_one_person_whatever_its_case(cast, act):
    user_create(actor=act("platform_admin"), **GOOD)
    with pytest.raises(Conflict):
        user_create(actor=act("platform_admin"), **{**GOOD, "email": "ADA@example.org"})
    assert AuditEvent.objects.count() == 1


@pytest.mark.parametrize("name", ["lead", "org_admin", "auditor", "fleet_operator", "outsider"])
def test_nobody_else_makes_people(cast, act, name):
    with pytest.raises(Forbidden):
        user_create(actor=act(name), **GOOD)
    with pytest.raises(Forbidden):
        user_list(actor=act(name))


def test_a_platform_role_is_given_and_taken(cast, act):
    user_role_set(actor=act("platform_admin"), public_id=cast.member.public_id, platform_role="auditor")
    user_role_set(actor=act("platform_admin"), public_id=cast.member.public_id, platform_role="auditor")
    assert actor_may(actor=actor_of(cast.member), permission=Permission.AUDIT_READ)
    user_role_set(actor=act("platform_admin"), public_id=cast.member.public_id, platform_role="")
    assert not actor_may(actor=actor_of(cast.member), permission=Permission.AUDIT_READ)
    assert [event.after["platform_role"] for event in AuditEvent.objects.order_by("pk")] == ["auditor", ""]


def test_a_switched_off_person_is_gone_and_named_still(cast, act):
    for _ in range(2):
        user_deactivate(actor=act("platform_admin"), public_id=cast.member.public_id, reason="Left.")
    assert not User.objects.get(pk=cast.member.pk).is_active
    assert AuditEvent.objects.filter(action="user.deactivate").count() == 1
    with pytest.raises(NotFound):
        user_get(public_id=cast.member.public_id)
    assert names_of(public_ids=[cast.member.public_id, "sweep"]) == {cast.member.public_id: "member"}


def test_nobody_switches_off_themselves(cast, act):
    with pytest.raises(Conflict):
        user_deactivate(actor=act("platform_admin"), public_id=cast.platform_admin.public_id)
