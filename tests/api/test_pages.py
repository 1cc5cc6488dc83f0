"""Cursor pages: every row once, whatever the ties, the ordering and the page size (C36)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.urls import get_resolver, reverse
from rest_framework.test import APIClient

from fleet.models import Cluster, GpuInterval
from portal.kernel.clock import now
from portal.kernel.errors import InvalidInput
from portal.tenancy.api.endpoint import ListEndpoint
from portal.tenancy.models import Project
from portal.tenancy.selectors.keyset import keyset_page
from tests.api.conftest import Api
from tests.cast import Cast, make_cluster, make_project
from tests.table.crowd import add_to
from tests.table.rest_rows import ROWS as REST_ROWS
from tests.table.rows import routes
from tests.table.world import make_world

pytestmark = pytest.mark.django_db


def _intervals(cast: Cast, count: int) -> set[int]:
    cluster: Cluster = make_cluster()
    start = now() - timedelta(hours=2)
    rows = GpuInterval.objects.bulk_create(
        GpuInterval(
            cluster=cluster,
            pod_uid=f"uid-{number}",
            resource_name="nvidia.com/gpu",
            namespace=cast.project.namespace,
            pod_name=f"pod-{number}",
            project_id=cast.project.public_id,
            devices=1,
            started_at=start,
            ended_at=start + timedelta(hours=1),
            start_basis="pod_scheduled",
        )
        for number in range(count)
    )
    return {row.pk for row in rows}


@pytest.mark.parametrize("ordering", ["-started_at", "started_at"])
def test_c36_a_thousand_rows_with_one_start_come_once_each(cast: Cast, api: Api, ordering: str) -> None:
    ids = _intervals(cast, 1000)
    viewer = api("viewer")
    period = {"start": (now() - timedelta(days=1)).isoformat(), "end": (now() + timedelta(days=1)).isoformat()}
    answer = viewer.get(
        f"/api/v1/projects/{cast.project.public_id}/intervals/", {**period, "limit": 50, "ordering": ordering}
    ).json()
    pages = [[row["id"] for row in answer["results"]]]
    while answer["next"]:
        answer = viewer.get(answer["next"]).json()
        pages.append([row["id"] for row in answer["results"]])
    assert [len(page) for page in pages] == [50] * 20
    seen = [pk for page in pages for pk in page]
    assert len(seen) == len(set(seen)) == 1000
    assert set(seen) == ids


@pytest.mark.parametrize("ordering", ["name", "-name", "created_at", "-created_at", "organization__name"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_c36_every_ordering_and_size(cast: Cast, ordering: str, size: int) -> None:
    at = now()
    for number in range(10):
        make_project(cast.organization, f"p-{number}", name=f"Same {number % 2}", created_at=at)
    expected = {project.pk for project in Project.objects.all()}
    seen: list[int] = []
    cursor = None
    while True:
        page = keyset_page(Project.objects.select_related("organization"), ordering=ordering, size=size, cursor=cursor)
        seen += [row.pk for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_rows_that_arrive_between_pages_repeat_none(cast: Cast) -> None:
    first = keyset_page(Project.objects.all(), ordering="-created_at", size=1)
    make_project(cast.organization, "late")
    second = keyset_page(Project.objects.all(), ordering="-created_at", size=1, cursor=first.next_cursor)
    assert first.rows[0].pk != second.rows[0].pk
    assert second.rows[0].slug != "late"


def test_a_page_costs_one_query(cast: Cast, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        keyset_page(Project.objects.all(), ordering="name", size=1)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "ä",
        "e30=",
        "W10=",
        "bnVsbA==",
        "WyItbmFtZSIsICJhIiwgMV0=",  # ["-name", "a", 1]: of another ordering
        "WyJuYW1lIiwgImEiLCB0cnVlXQ==",  # ["name", "a", true]
        "WyJuYW1lIiwgIlx1MDAwMCIsIDFd",  # ["name", "\u0000", 1]
        "WyJuYW1lIiwgbnVsbCwgMV0=",  # ["name", null, 1]
        "WyJuYW1lIiwgImEiLCAxZTk5OV0=",  # ["name", "a", 1e999]
        "WyJuYW1lIiwgImEiLCAxMDAwMDAwMDAwMDAwMDAwMDAwMDAwXQ==",  # a pk beyond bigint
    ],
)
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        keyset_page(Project.objects.all(), ordering="name", size=1, cursor=cursor)
    assert "cursor" in refused.value.fields


@pytest.mark.parametrize(
    "query",
    [{"limit": "0"}, {"limit": "201"}, {"limit": "x"}, {"limit": "²"}, {"limit": "-1"}, {"ordering": "id"}, {"cursor": "x"}],
)
def test_paging_parameters_are_checked(cast: Cast, api: Api, query: dict[str, str]) -> None:
    answer = api("viewer").get("/api/v1/projects/", query)
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == set(query)


def _lists() -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for pattern in routes(get_resolver("portal.api_urls").url_patterns):
        view = getattr(pattern.callback, "cls", None)
        if view is not None and issubclass(view, ListEndpoint):
            found.append((pattern.name, view.orderings))
    return found


def test_c36_every_list_in_every_ordering_it_offers() -> None:
    """With more rows than a page, each list gives each row once, whatever one sorts by."""
    world = make_world()
    add_to(world, 1, 20)
    lists = _lists()
    assert len(lists) > 10
    rows = {row.route: row for row in REST_ROWS if row.method == "GET"}
    for route, orderings in lists:
        row = rows[route]
        address = reverse(route, kwargs={name: world.ids[of] for name, of in row.path.items()})
        clients = {name: APIClient() for name in ("lead", "org_admin", "platform_admin") if row.expected[name] == 200}
        for name, caller in clients.items():
            caller.force_login(world.people[name])
        client = max(clients.values(), key=lambda caller: len(caller.get(address, {"limit": 200}).json()["results"]))
        everything: list[list[str]] = []
        for ordering in orderings:
            answer = client.get(address, {"ordering": ordering, "limit": 7}).json()
            seen = [json.dumps(item, sort_keys=True) for item in answer["results"]]
            while answer["next"]:
                answer = client.get(answer["next"]).json()
                assert answer["results"], (route, ordering)
                seen += [json.dumps(item, sort_keys=True) for item in answer["results"]]
            assert len(seen) == len(set(seen)) > 7, (route, ordering, len(seen), len(set(seen)))
            everything.append(sorted(seen))
        assert all(one == everything[0] for one in everything), route
