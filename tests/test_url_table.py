"""Every address × every kind of caller, complete against the URLconf (design §7, contract A1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from portal.audit.models import AuditEvent
from tests.table.page_rows import PAGE_ROWS
from tests.table.rest_rows import ROWS as REST_ROWS
from tests.table.rows import CALLERS, Row, routes
from tests.table.world import ANONYMOUS, UNKNOWN, World, make_world

ROWS = [*REST_ROWS, *PAGE_ROWS]
METHODS = ("get", "post", "put", "patch", "delete")


def _is_rest(pattern: URLPattern) -> bool:
    return str(pattern.name or "").startswith("api-")


def _methods(pattern: URLPattern) -> set[str]:
    view = getattr(pattern.callback, "cls", None) or getattr(pattern.callback, "view_class", None)
    return {method.upper() for method in METHODS if hasattr(view, method)} if view is not None else set()


def test_the_table_has_every_rest_address_and_method() -> None:
    served = {
        (pattern.name, method)
        for pattern in routes(get_resolver().url_patterns)
        if _is_rest(pattern) and pattern.name != "api-nowhere"
        for method in _methods(pattern)
    }
    assert len(served) > 60
    told = {(row.route, row.method) for row in REST_ROWS if row.route.startswith("api-")} - {("api-nowhere", "GET")}
    assert served == told, f"not in the table: {served - told}; not served: {told - served}"


def test_the_table_has_every_page() -> None:
    unnamed = [pattern for pattern in routes(get_resolver().url_patterns) if not pattern.name]
    assert unnamed == [], "give the route a name, so that the table can speak of it"
    served = {pattern.name for pattern in routes(get_resolver().url_patterns) if not _is_rest(pattern)}
    told = {row.route for row in ROWS if not row.route.startswith("api-")}
    assert served == told, f"not in the table: {served - told}; not served: {told - served}"


def test_every_row_speaks_of_every_caller() -> None:
    assert [str(row) for row in ROWS if set(row.expected) != set(CALLERS)] == []


@pytest.fixture
def world(db: None) -> World:
    return make_world()


def _call(row: Row, world: World, caller: str, ids: dict[str, str], headers: dict[str, str] | None = None) -> Any:
    client = Client(raise_request_exception=False)
    if caller != ANONYMOUS:
        client.force_login(world.people[caller])
    kwargs = {"rest": "v1/nothing/"} if row.route == "api-nowhere" else {name: ids[of] for name, of in row.path.items()}
    address = reverse(row.route, kwargs=kwargs)
    body = row.body(ids) if row.body is not None else {}
    for name, value in body.items():
        if isinstance(value, str) and value.endswith("@example.org") and value.split("@")[0] in world.people:
            body[name] = world.people[value.split("@")[0]].email
    options: dict[str, Any] = {"headers": {**row.headers, **(headers or {})}}
    if row.route.startswith("api-"):
        options |= {"content_type": "application/json"}
    return getattr(client, row.method.lower())(address, body or None, **options)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_caller_gets_what_the_table_says(row: Row, world: World) -> None:
    """And what was changed has an audit row that names who did it and how; what was refused has none (contract §9)."""
    seen, written = {}, 0
    newest = AuditEvent.objects.latest("pk").pk
    for caller in CALLERS:
        before = transaction.savepoint()
        status = _call(row, world, caller, world.ids, headers={"X-Request-ID": f"table-{caller}"}).status_code
        events = list(AuditEvent.objects.filter(pk__gt=newest))
        transaction.savepoint_rollback(before)
        seen[caller] = status
        written += len(events)
        if events:
            assert status < 400, (caller, status, events)
            channel = "api" if row.route.startswith("api-") else "browser"
            told = {(event.actor_id, event.channel, event.request_id) for event in events}
            assert told == {(world.people[caller].public_id, channel, f"table-{caller}")}
    assert seen == dict(row.expected)
    assert (written > 0) is row.changes, f"{written} audit rows"


def _plain(answer: Any) -> tuple[int, str, str]:
    """Status, content type and body, without what differs from request to request."""
    body = re.sub(r'nonce="[^"]+"|csrfmiddlewaretoken" value="[^"]+"|"X-CSRFToken": "[^"]+"', "", answer.content.decode())
    body = re.sub(rf"[a-z]{{3}}_(?:{UNKNOWN}|[0-9a-hjkmnp-tv-z]{{20}})|[0-9a-f]{{32}}", "…", body)
    return answer.status_code, answer.headers["Content-Type"], body


@pytest.mark.parametrize("row", [row for row in ROWS if row.hidden], ids=str)
def test_what_is_not_yours_does_not_exist(row: Row, world: World) -> None:
    """A1: the answer for another tenant's object is, to the byte, the answer for an id that never existed."""
    strangers = [caller for caller, status in row.expected.items() if status == 404]
    assert "outsider" in strangers
    for caller in strangers:
        foreign = _call(row, world, caller, world.ids)
        never = _call(row, world, caller, world.stranger_ids())
        assert _plain(foreign) == _plain(never), caller
        assert foreign.status_code == 404
