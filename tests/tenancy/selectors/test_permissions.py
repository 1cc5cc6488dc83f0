"""One rule, two questions: "may this actor" and "which rows" agree for every person, permission and project."""

from itertools import product

import pytest

from portal.audit.domain.actors import Actor, ActorKind, Channel, Scope
from portal.kernel.errors import Conflict, Forbidden, NotFound
from portal.tenancy.domain.roles import (
    GRANTED,
    NEEDS_OPEN_PROJECT,
    READS,
    OrganizationRole,
    Permission,
    PlatformRole,
    ProjectRole,
)
from portal.tenancy.models import OrganizationMembership, Project, ProjectMembership, ProjectState, Source, User
from portal.tenancy.selectors.permissions import (
    actor_may,
    organizations_seen,
    organizations_where,
    permissions_by_project,
    permissions_of,
    platform_permissions,
    projects_where,
    require,
    require_organization,
    require_platform,
)
from tests.cast import actor_of, make_member, make_project, make_user

PEOPLE = ("viewer", "member", "lead", "other_lead", "org_admin", "fleet_operator", "auditor", "platform_admin", "outsider")
ANONYMOUS = Actor(kind=ActorKind.ANONYMOUS, id="", channel=Channel.BROWSER)


@pytest.mark.parametrize(("name", "permission"), list(product(PEOPLE, Permission)))
@pytest.mark.parametrize("state", list(ProjectState))
def test_both_questions_have_one_answer(cast, act, name, permission, state):
    actor = act(name)
    Project.objects.filter(pk=cast.project.pk).update(state=state.value)
    rows = set(projects_where(actor=actor, permission=permission).values_list("pk", flat=True))
    for project in Project.objects.all():
        assert (project.pk in rows) == actor_may(actor=actor, permission=permission, project=project)
        assert (project.pk in rows) == (permission in permissions_of(actor=actor, project=project))
    for organization in (cast.organization, cast.other_organization):
        which = organizations_where(actor=actor, permission=permission).filter(pk=organization.pk).exists()
        assert which == actor_may(actor=actor, permission=permission, organization=organization)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("viewer", ProjectRole.VIEWER),
        ("member", ProjectRole.MEMBER),
        ("lead", ProjectRole.LEAD),
        ("org_admin", OrganizationRole.ADMIN),
    ],
)
def test_each_role_holds_its_row_of_the_table_at_home_and_nothing_elsewhere(cast, act, name, role):
    assert permissions_of(actor=act(name), project=cast.project) == GRANTED[role]
    assert permissions_of(actor=act(name), project=cast.other_project) == frozenset()


@pytest.mark.parametrize("role", [PlatformRole.FLEET_OPERATOR, PlatformRole.AUDITOR, PlatformRole.PLATFORM_ADMIN])
def test_a_platform_role_holds_its_row_everywhere(cast, act, role):
    actor = act(role.value)
    assert platform_permissions(actor=actor) == GRANTED[role]
    for project in (cast.project, cast.other_project):
        assert permissions_of(actor=actor, project=project) == GRANTED[role]


def test_an_organization_administrator_reaches_its_projects_of_tomorrow(cast, act):
    later = make_project(cast.organization)
    assert Permission.REQUEST_DECIDE_GRANT in permissions_of(actor=act("org_admin"), project=later)


def test_roles_from_two_sources_add_up(cast, act):
    ProjectMembership.objects.create(
        project=cast.project, user=cast.viewer, role=ProjectRole.LEAD.value, source=Source.IDENTITY_PROVIDER.value
    )
    assert permissions_of(actor=act("viewer"), project=cast.project) == GRANTED[ProjectRole.LEAD]


def test_a_foreign_project_does_not_exist_and_one_seen_forbids(cast, act):
    with pytest.raises(NotFound):
        require(actor=act("outsider"), permission=Permission.PROJECT_READ, project=cast.project)
    with pytest.raises(NotFound):
        require(actor=act("outsider"), permission=Permission.REQUEST_CREATE, project=cast.project)
    with pytest.raises(Forbidden, match="lead"):
        require(actor=act("member"), permission=Permission.MEMBER_MANAGE, project=cast.project)
    require(actor=act("lead"), permission=Permission.MEMBER_MANAGE, project=cast.project)


@pytest.mark.parametrize("name", ["fleet_operator", "platform_admin"])
def test_the_platform_sees_no_tenant_without_a_staff_session(cast, act, name):
    with pytest.raises(NotFound):
        require(actor=act(name), permission=Permission.PROJECT_READ, project=cast.project)


def test_a_foreign_organization_does_not_exist(cast, act):
    with pytest.raises(NotFound):
        require_organization(actor=act("outsider"), permission=Permission.PROJECT_CREATE, organization=cast.organization)
    with pytest.raises(Forbidden):
        require_organization(actor=act("lead"), permission=Permission.PROJECT_CREATE, organization=cast.organization)
    require_organization(actor=act("org_admin"), permission=Permission.PROJECT_CREATE, organization=cast.organization)


@pytest.mark.parametrize(
    ("name", "count"),
    [("viewer", 1), ("org_admin", 1), ("auditor", 2), ("platform_admin", 2), ("fleet_operator", 0), ("outsider", 1)],
)
def test_organizations_that_exist_for_each(cast, act, name, count):
    assert organizations_seen(actor=act(name)).count() == count


@pytest.mark.parametrize("permission", list(Permission))
def test_a_read_token_of_a_lead_reads_only(cast, permission):
    actor = actor_of(cast.lead, Channel.API, scopes=frozenset({Scope.READ}), token_id="tok_1")
    allowed = permission in GRANTED[ProjectRole.LEAD] and permission in READS
    assert (permission in permissions_of(actor=actor, project=cast.project)) == allowed
    assert projects_where(actor=actor, permission=permission).exists() == allowed


def test_a_read_token_is_told_so(cast):
    actor = actor_of(cast.lead, Channel.API, scopes=frozenset({Scope.READ}), token_id="tok_1")
    with pytest.raises(Forbidden, match="write scope"):
        require(actor=actor, permission=Permission.REQUEST_CREATE, project=cast.project)


def test_a_token_never_widens_its_owner(cast):
    actor = actor_of(cast.viewer, Channel.API, token_id="tok_1")
    assert permissions_of(actor=actor, project=cast.project) == GRANTED[ProjectRole.VIEWER]


@pytest.mark.parametrize("name", PEOPLE)
def test_a_switched_off_account_may_nothing(cast, act, name):
    actor = act(name)
    User.objects.filter(pk=actor.user_pk).update(is_active=False)
    for permission in Permission:
        assert not projects_where(actor=actor, permission=permission).exists()
        assert not organizations_where(actor=actor, permission=permission).exists()
    assert permissions_of(actor=actor, project=cast.project) == frozenset()
    assert platform_permissions(actor=actor) == frozenset()


@pytest.mark.parametrize("permission", list(Permission))
def test_nobody_without_signing_in(cast, permission):
    assert not projects_where(actor=ANONYMOUS, permission=permission).exists()
    assert not actor_may(actor=ANONYMOUS, permission=permission, project=cast.project)
    assert not actor_may(actor=ANONYMOUS, permission=permission)
    with pytest.raises(NotFound):
        require(actor=ANONYMOUS, permission=permission, project=cast.project)


def test_loops_are_let_through(cast):
    loop = Actor.service("sweep")
    assert projects_where(actor=loop, permission=Permission.DEPLOYMENT_CHANGE).count() == 2
    assert permissions_of(actor=loop, project=cast.project) == frozenset(Permission)
    require_platform(actor=loop, permission=Permission.FLEET_MANAGE)


def test_a_closed_project_refuses_what_is_new_and_lets_the_rest_go_on(cast, act):
    cast.project.state = ProjectState.CLOSED.value
    cast.project.save(update_fields=["state"])
    for permission in (Permission.REQUEST_CREATE, Permission.MEMBER_MANAGE, Permission.DEPLOYMENT_CHANGE):
        with pytest.raises(Conflict, match="closed"):
            require(actor=act("lead"), permission=permission, project=cast.project)
    for permission in (Permission.PROJECT_READ, Permission.DEPLOYMENT_DELETE, Permission.KEY_MANAGE):
        require(actor=act("lead"), permission=permission, project=cast.project)
    assert permissions_of(actor=act("lead"), project=cast.project) == GRANTED[ProjectRole.LEAD] - NEEDS_OPEN_PROJECT
    with pytest.raises(Forbidden):
        require(actor=act("viewer"), permission=Permission.REQUEST_CREATE, project=cast.project)
    with pytest.raises(Conflict, match="closed"):
        require(actor=Actor.service("seed"), permission=Permission.REQUEST_CREATE, project=cast.project)
    with pytest.raises(NotFound):
        require(actor=act("outsider"), permission=Permission.REQUEST_CREATE, project=cast.project)


def test_the_platform_refuses_by_role(cast, act):
    require_platform(actor=act("fleet_operator"), permission=Permission.FLEET_MANAGE)
    for name in ("lead", "org_admin", "auditor", "platform_admin"):
        with pytest.raises(Forbidden, match="fleet operator"):
            require_platform(actor=act(name), permission=Permission.FLEET_MANAGE)


def test_lists_cost_one_query_however_many_projects(cast, act, django_assert_num_queries):
    for _ in range(20):
        make_member(make_project(cast.organization), cast.member)
    with django_assert_num_queries(1):
        held = permissions_by_project(actor=act("member"))
    assert len(held) == 21
    assert all(permissions == GRANTED[ProjectRole.MEMBER] for permissions in held.values())
    with django_assert_num_queries(1):
        permissions_of(actor=act("member"), project=cast.project)
    with django_assert_num_queries(1):
        require(actor=act("member"), permission=Permission.REQUEST_CREATE, project=cast.project)


def test_leaving_ends_it(cast, act):
    other = make_user()
    OrganizationMembership.objects.create(organization=cast.organization, user=other, role=OrganizationRole.ADMIN.value)
    assert projects_where(actor=actor_of(other), permission=Permission.PROJECT_CLOSE).exists()
    OrganizationMembership.objects.filter(user=other).delete()
    assert not projects_where(actor=actor_of(other), permission=Permission.PROJECT_CLOSE).exists()
