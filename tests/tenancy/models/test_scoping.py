"""Fail-closed tenancy (design §6): a query on tenant rows that names no project raises."""

import pytest

from fleet.models import Grant
from portal.tenancy.models import Project, UnscopedQuery, unscoped
from tests.cast import make_grant, make_profile

QUERIES = {
    "list": lambda rows: list(rows),
    "first": lambda rows: rows.first(),
    "get": lambda rows: rows.get(pk=1),
    "count": lambda rows: rows.count(),
    "exists": lambda rows: rows.exists(),
    "aggregate": lambda rows: rows.aggregate(),
    "update": lambda rows: rows.update(devices=0),
    "delete": lambda rows: rows.delete(),
    "iterator": lambda rows: list(rows.iterator()),
    "values": lambda rows: list(rows.values_list("pk", flat=True)),
    "in_bulk": lambda rows: rows.in_bulk([1]),
}


@pytest.mark.parametrize("query", list(QUERIES))
@pytest.mark.django_db
def test_an_unscoped_query_raises(query):
    with pytest.raises(UnscopedQuery):
        QUERIES[query](Grant.objects.filter(devices__gte=0))


@pytest.mark.parametrize("query", [name for name in QUERIES if name not in {"get"}])
def test_a_scoped_query_runs(cast, query):
    QUERIES[query](Grant.objects.for_project(cast.project).filter(devices__gte=0))
    QUERIES[query](Grant.objects.filter(devices__gte=0).for_projects(Project.objects.all()))
    with unscoped("a test"):
        QUERIES[query](Grant.objects.filter(devices__gte=0))


def test_a_scope_sees_its_own_project_only(cast):
    profile = make_profile()
    mine, other = make_grant(cast.project, profile), make_grant(cast.other_project, profile)
    assert list(Grant.objects.for_project(cast.project)) == [mine]
    assert set(Grant.objects.for_projects(Project.objects.all())) == {mine, other}


@pytest.mark.parametrize(
    "join",
    [
        lambda scoped, open_: scoped | open_,
        lambda scoped, open_: open_ | scoped,
        lambda scoped, open_: scoped ^ open_,
        lambda scoped, open_: scoped.union(open_),
        lambda scoped, open_: open_.union(scoped),
        lambda scoped, open_: scoped.difference(open_),
    ],
)
def test_a_scope_does_not_spread_to_what_is_joined_to_it(cast, join):
    make_grant(cast.other_project, make_profile())
    with pytest.raises(UnscopedQuery):
        list(join(Grant.objects.for_project(cast.project), Grant.objects.all()))


def test_two_scopes_join_to_one(cast):
    profile = make_profile()
    rows = [make_grant(project, profile) for project in (cast.project, cast.other_project)]
    mine, other = (Grant.objects.for_project(project) for project in (cast.project, cast.other_project))
    assert set(mine | other) == set(mine.union(other)) == set(rows)


def test_unscoped_needs_a_reason_and_ends_with_its_block(cast):
    with pytest.raises(ValueError, match="reason"), unscoped(""):
        pass
    with unscoped("a test"):
        Grant.objects.count()
    with pytest.raises(UnscopedQuery):
        Grant.objects.count()
