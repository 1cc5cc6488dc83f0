"""Each page and endpoint costs the same queries with 2 rows of everything and with 20, and as many as the file says.

The file changes by an explicit flag only: ``UPDATE_QUERY_COUNTS=1 .venv/bin/pytest tests/test_query_counts.py``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.table.crowd import add_to
from tests.table.page_rows import PAGE_ROWS
from tests.table.rest_rows import ROWS as REST_ROWS
from tests.table.rows import Row
from tests.table.world import ANONYMOUS, World, make_world

FILE = Path(__file__).with_name("query_counts.json")
QUERIES_MAX = 20
"""No page or endpoint may cost more, whatever the file says."""

CALLERS = ("lead", "org_admin", "auditor", "fleet_operator", "platform_admin", ANONYMOUS)
ROWS = [
    row for row in [*REST_ROWS, *PAGE_ROWS] if row.method == "GET" and any(row.expected[caller] == 200 for caller in CALLERS)
]


def _queries(row: Row, world: World) -> dict[str, int]:
    """Caller -> queries, for each caller whom it answers: they see different rows, and the costliest counts."""
    answer = {}
    for caller in CALLERS:
        if row.expected[caller] != 200:
            continue
        client = Client()
        if caller != ANONYMOUS:
            client.force_login(world.people[caller])
        address = reverse(row.route, kwargs={name: world.ids[of] for name, of in row.path.items()})
        with CaptureQueriesContext(connection) as seen:
            status = client.get(address, headers=dict(row.headers)).status_code
        assert status == 200, (row, caller, status)
        answer[caller] = len(seen)
    return answer


@pytest.mark.django_db
@pytest.mark.timeout(300)
def test_the_same_queries_with_2_rows_and_with_20() -> None:
    world = make_world()
    add_to(world, 1, 2)
    few = {str(row): _queries(row, world) for row in ROWS}
    add_to(world, 3, 20)
    many = {str(row): _queries(row, world) for row in ROWS}
    grown = {name: (few[name], many[name]) for name in few if few[name] != many[name]}
    assert grown == {}, "queries grow with the rows: join or prefetch in the selector"
    most = {name: max(counts.values()) for name, counts in many.items()}
    if os.environ.get("UPDATE_QUERY_COUNTS"):
        FILE.write_text(json.dumps(most, indent=2, sort_keys=True) + "\n")
    told = json.loads(FILE.read_text())
    changed = {name: (told.get(name), most.get(name)) for name in sorted({*told, *most}) if told.get(name) != most.get(name)}
    assert changed == {}, "(in the file, now): read the docstring above"
    assert {name: count for name, count in most.items() if count > QUERIES_MAX} == {}
