"""Pages: one row for each address, and one for each form that an address takes."""

from __future__ import annotations

from typing import Any

from tests.table.rest_rows import PROJECT, Body, of
from tests.table.rows import EVERYBODY, LEADS, MEMBERS, READERS, Row, table

SIGN_IN = 302
"""Nobody is led to sign-in, and back from there."""


def page(route: str, path: dict[str, str] | None = None) -> Row:
    """Every signed-in person, each with what is theirs to see."""
    return Row(route, "GET", table(may=EVERYBODY, ok=200, sees=EVERYBODY, nobody=SIGN_IN), path=path or {})


def of_project(route: str, path: dict[str, str]) -> Row:
    return Row(route, "GET", table(may=READERS, ok=200, sees=READERS, nobody=SIGN_IN), path=path, hidden=True)


def form(route: str, path: dict[str, str], may: frozenset[str], body: Body | None = None, ok: int = 302, **more: Any) -> Row:
    """A form on an object of the project; done, it leads on (302)."""
    sees = more.pop("sees", READERS)
    return Row(route, "POST", table(may=may, ok=ok, sees=sees, nobody=SIGN_IN), path=path, body=body, hidden=True, **more)


PAGE_ROWS: list[Row] = [
    # Project
    of_project("project", PROJECT),
    form("member-set", PROJECT, LEADS, of(email="auditor@example.org", role="viewer")),
    form("member-remove", {**PROJECT, "user_id": "viewer"}, LEADS),
    of_project("usage", PROJECT),
    of_project("usage-intervals", PROJECT),
    of_project("project-keys", PROJECT),
    form("project-keys", PROJECT, MEMBERS, of(name="new"), ok=200),
    form("key-revoke", {"public_id": "key"}, MEMBERS),
    # One's own
    page("tokens"),
    Row(
        "tokens",
        "POST",
        table(may=EVERYBODY, ok=200, sees=EVERYBODY, nobody=SIGN_IN),
        body=of(name="t", scope="read", expires_in_days="7"),
    ),
    form("token-revoke", {"public_id": "token"}, frozenset({"member"}), sees=frozenset()),
    # Fleet
    page("fleet"),
    page("fleet-live"),
]
