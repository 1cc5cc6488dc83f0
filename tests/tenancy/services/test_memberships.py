import pytest

from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from portal.tenancy.domain.roles import ProjectRole
from portal.tenancy.models import OrganizationMembership, ProjectMembership, Source
from portal.tenancy.selectors.memberships import membership_list, organization_membership_list
from portal.tenancy.services.memberships import (
    membership_remove,
    membership_set,
    organization_membership_remove,
    organization_membership_set,
)
from tests.cast import actor_of, make_cast, make_user
from tests.together import all_at_once


def test_a_lead_adds_changes_and_removes_a_member(cast, act):
    user = make_user("ada")
    membership_set(actor=act("lead"), project=cast.project, email=user.email.upper(), role="viewer")
    membership_set(actor=act("lead"), project=cast.project, email=user.email, role=ProjectRole.MEMBER)
    assert ProjectMembership.objects.get(user=user).role == "member"
    membership_remove(actor=act("lead"), project=cast.project, user_public_id=user.public_id)
    assert not ProjectMembership.objects.filter(user=user).exists()
    trail = AuditEvent.objects.filter(object_id=user.public_id).order_by("pk").values_list("action", "before", "after")
    assert list(trail) == [
        ("membership.set", None, {"role": "viewer"}),
        ("membership.set", {"role": "viewer"}, {"role": "member"}),
        ("membership.remove", {"role": "member"}, None),
    ]


def test_the_same_role_again_writes_nothing(cast, act):
    membership_set(actor=act("lead"), project=cast.project, email=cast.member.email, role="member")
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("name", ["viewer", "member", "auditor"])
def test_those_who_see_and_may_not(cast, act, name):
    with pytest.raises(Forbidden):
        membership_set(actor=act(name), project=cast.project, email=cast.outsider.email, role="viewer")
    with pytest.raises(Forbidden):
        membership_remove(actor=act(name), project=cast.project, user_public_id=cast.member.public_id)


@pytest.mark.parametrize("name", ["outsider", "fleet_operator", "platform_admin"])
def test_strangers(cast, act, name):
    with pytest.raises(NotFound):
        membership_set(actor=act(name), project=cast.project, email=cast.outsider.email, role="viewer")
    with pytest.raises(NotFound):
        membership_list(actor=act(name), project=cast.project)


@pytest.mark.parametrize(("email", "role", "field"), [("nobody@example.org", "viewer", "email"), ("", "viewer", "email")])
def test_unknown_people(cast, act, email, role, field):
    with pytest.raises(InvalidInput) as caught:
        membership_set(actor=act("lead"), project=cast.project, email=email, role=role)
    assert list(caught.value.fields) == [field]


@pytest.mark.parametrize("role", ["owner", "org_admin", "", "LEAD"])
def test_unknown_roles(cast, act, role):
    with pytest.raises(InvalidInput) as caught:
        membership_set(actor=act("lead"), project=cast.project, email=cast.member.email, role=role)
    assert list(caught.value.fields) == ["role"]


def test_what_the_identity_provider_gave_is_never_touched(cast, act):
    user = make_user()
    ProjectMembership.objects.create(project=cast.project, user=user, role="member", source=Source.IDENTITY_PROVIDER.value)
    with pytest.raises(Conflict, match="identity provider"):
        membership_remove(actor=act("lead"), project=cast.project, user_public_id=user.public_id)
    membership_set(actor=act("lead"), project=cast.project, email=user.email, role="lead")
    membership_remove(actor=act("lead"), project=cast.project, user_public_id=user.public_id)
    assert [m.role for m in ProjectMembership.objects.filter(user=user)] == ["member"]


def test_removing_nobody(cast, act):
    with pytest.raises(NotFound):
        membership_remove(actor=act("lead"), project=cast.project, user_public_id=cast.outsider.public_id)


def test_the_list_costs_the_same_with_many(cast, act, django_assert_num_queries):
    for _ in range(20):
        ProjectMembership.objects.create(project=cast.project, user=make_user(), role="viewer")
    with django_assert_num_queries(2):
        assert len([membership.user.name for membership in membership_list(actor=act("viewer"), project=cast.project)]) == 24


def test_a_platform_admin_makes_and_unmakes_administrators(cast, act):
    organization_membership_set(actor=act("platform_admin"), organization=cast.organization, email=cast.lead.email)
    organization_membership_set(actor=act("platform_admin"), organization=cast.organization, email=cast.lead.email)
    for name in ("org_admin", "platform_admin", "auditor"):
        members = organization_membership_list(actor=act(name), organization=cast.organization)
        assert [membership.user for membership in members] == [cast.lead, cast.org_admin]
    for name, error in (("member", Forbidden), ("outsider", NotFound)):
        with pytest.raises(error):
            organization_membership_list(actor=act(name), organization=cast.organization)
    organization_membership_remove(
        actor=act("platform_admin"), organization=cast.organization, user_public_id=cast.lead.public_id
    )
    assert not OrganizationMembership.objects.filter(user=cast.lead).exists()
    assert AuditEvent.objects.count() == 2
    with pytest.raises(NotFound):
        organization_membership_remove(
            actor=act("platform_admin"), organization=cast.organization, user_public_id=cast.lead.public_id
        )


def test_an_administrator_makes_no_administrators(cast, act):
    with pytest.raises(Forbidden):
        organization_membership_set(actor=act("org_admin"), organization=cast.organization, email=cast.lead.email)


@pytest.mark.django_db(transaction=True)
def test_race_of_one_membership_set_by_many_makes_one_row_with_its_trail():
    cast = make_cast()
    user = make_user()
    roles = ["viewer", "member"] * 6
    all_at_once(
        [
            lambda role=role: membership_set(actor=actor_of(cast.lead), project=cast.project, email=user.email, role=role)
            for role in roles
        ]
    )
    (membership,) = ProjectMembership.objects.filter(user=user)
    trail = list(AuditEvent.objects.filter(object_id=user.public_id).order_by("pk"))
    assert trail[0].before is None
    assert [event.before for event in trail[1:]] == [event.after for event in trail[:-1]]
    assert trail[-1].after == {"role": membership.role}
