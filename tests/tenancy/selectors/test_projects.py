import pytest

from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.projects import (
    organization_get,
    organization_list,
    project_get,
    project_list,
    projects_where_may,
)
from tests.cast import make_member, make_project


@pytest.mark.parametrize("name", ["viewer", "member", "lead", "org_admin", "auditor"])
def test_those_inside_get_it(cast, act, name):
    assert project_get(actor=act(name), public_id=cast.project.public_id) == cast.project


@pytest.mark.parametrize("name", ["outsider", "fleet_operator", "platform_admin"])
def test_a_foreign_id_answers_like_one_that_never_existed(cast, act, name):
    messages = set()
    for public_id in (cast.project.public_id, "prj_" + "0" * 20, "", "' or 1=1"):
        with pytest.raises(NotFound) as caught:
            project_get(actor=act(name), public_id=public_id)
        messages.add((caught.value.code, caught.value.detail))
    assert len(messages) == 1


def test_lists(cast, act):
    assert list(project_list(actor=act("member"))) == [cast.project]
    assert list(project_list(actor=act("outsider"))) == [cast.other_project]
    assert set(project_list(actor=act("auditor"))) == {cast.project, cast.other_project}
    assert list(organization_list(actor=act("member"))) == [cast.organization]
    assert set(project_list(actor=Actor.service("loop"))) == {cast.project, cast.other_project}


def test_choices_follow_the_permission(cast, act):
    assert not projects_where_may(actor=act("viewer"), permission=Permission.REQUEST_CREATE).exists()
    assert list(projects_where_may(actor=act("member"), permission=Permission.REQUEST_CREATE)) == [cast.project]


def test_an_organization_seen_and_one_not(cast, act):
    assert organization_get(actor=act("viewer"), public_id=cast.organization.public_id) == cast.organization
    with pytest.raises(NotFound):
        organization_get(actor=act("viewer"), public_id=cast.other_organization.public_id)


def test_a_list_costs_one_query(cast, act, django_assert_num_queries):
    for _ in range(20):
        make_member(make_project(cast.organization), cast.member)
    with django_assert_num_queries(1):
        assert len([project.organization.name for project in project_list(actor=act("member"))]) == 21
