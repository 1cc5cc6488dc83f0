"""Pages: one row for each address, and one for each form that an address takes."""

from __future__ import annotations

from typing import Any

from tests.table.rest_rows import DEPLOYMENT, PROJECT, REQUEST, Body, of
from tests.table.rows import ANONYMOUS, CALLERS, EVERYBODY, LEADS, MEMBERS, READERS, Row, table
from tests.table.world import deployment_payload

ONE_PROJECT = frozenset({"outsider", "member", "lead", "org_admin"})
"""Who may ask in exactly one project: there is nothing to choose, so they are led on."""

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


GRANT = {"profile": "h100", "devices": "1"}

PAGE_ROWS: list[Row] = [
    # Signing in and out
    Row("account_login", "GET", {**dict.fromkeys(CALLERS, 302), ANONYMOUS: 200}),
    page("account_logout"),
    Row("account_inactive", "GET", dict.fromkeys(CALLERS, 200)),
    page("account_change_password"),
    # Across projects
    page("home"),
    page("home-live"),
    page("inbox"),
    page("inbox-live"),
    Row(
        "inbox-decide",
        "POST",
        table(may=EVERYBODY, ok=302, sees=EVERYBODY, nobody=SIGN_IN),
        body=lambda ids: {"approve": ids["request"]},
    ),
    # Asking
    Row("ask", "GET", {**table(may=EVERYBODY, ok=200, sees=EVERYBODY, nobody=SIGN_IN), **dict.fromkeys(ONE_PROJECT, 302)}),
    Row(
        "ask-model",
        "GET",
        table(may=MEMBERS, ok=200, sees=READERS, nobody=SIGN_IN),
        path=PROJECT,
        hidden=True,
    ),
    form("ask-model", PROJECT, MEMBERS, of(**deployment_payload("new"))),
    form("ask-model-preview", PROJECT, MEMBERS, of(**deployment_payload("new")), ok=200, writes=False),
    Row(
        "ask-grant",
        "GET",
        table(may=MEMBERS, ok=200, sees=READERS, nobody=SIGN_IN),
        path=PROJECT,
        hidden=True,
    ),
    form("ask-grant", PROJECT, MEMBERS, of(**GRANT)),
    form("ask-grant-preview", PROJECT, MEMBERS, of(**GRANT), ok=200, writes=False),
    # Requests
    page("request-list"),
    page("request-list-live"),
    of_project("request", REQUEST),
    of_project("request-live", REQUEST),
    form("request-approve", REQUEST, LEADS),
    form("request-deny", REQUEST, LEADS, of(reason="Too large.")),
    form("request-withdraw", REQUEST, frozenset({"member"})),
    form("request-revoke", {"public_id": "approved"}, LEADS, of(reason="No longer.")),
    # Deployments
    page("deployment-list"),
    page("deployment-list-live"),
    of_project("deployment", DEPLOYMENT),
    of_project("deployment-live", DEPLOYMENT),
    form("deployment-scale", DEPLOYMENT, MEMBERS, of(replicas_min="1", replicas_max="2", version="1")),
    form("deployment-delete", DEPLOYMENT, MEMBERS, of(confirm="tiny-chat")),
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
