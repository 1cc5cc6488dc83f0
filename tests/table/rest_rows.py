"""REST: one row for each address and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.table.rows import (
    CALLERS,
    EVERYBODY,
    LEADS,
    MEMBERS,
    ORGANIZATION_SEEN,
    READERS,
    Ids,
    Row,
    table,
)
from tests.table.world import deployment_payload

Body = Callable[[Ids], dict[str, Any]]
INSIST = {"If-Match": "*"}
OPERATOR = frozenset({"fleet_operator"})
PLATFORM = frozenset({"platform_admin"})
PROJECT = {"public_id": "project"}
DEPLOYMENT = {"public_id": "deployment"}
REQUEST = {"public_id": "request"}
PROFILE = {"name": "new", "title": "New", "vendor": "nvidia", "architecture": "sm_90", "product": "X"}
PROFILE |= {"resource_name": "nvidia.com/gpu", "vram_bytes": 1, "node_selector": {"a": "b"}}  # type: ignore[dict-item]
CELL = {"backend": "llamacpp", "model_format": "gguf", "support": "unsupported", "reason": "It crashes."}


def of(**values: Any) -> Body:
    return lambda ids: values


def everybody(route: str, **more: Any) -> Row:
    """A list or a page of one's own: every signed-in person, each with what is theirs to see."""
    return Row(route, "GET", table(may=EVERYBODY, ok=200, sees=EVERYBODY), **more)


def read(route: str, path: dict[str, str]) -> Row:
    """An object of the project."""
    return Row(route, "GET", table(may=READERS, ok=200, sees=READERS), path=path, hidden=True)


def write(
    route: str, method: str, path: dict[str, str], may: frozenset[str], ok: int, body: Body | None = None, **more: Any
) -> Row:
    """A change of an object of the project."""
    return Row(route, method, table(may=may, ok=ok, sees=READERS), path=path, body=body, hidden=True, **more)


def platform(
    route: str,
    method: str,
    may: frozenset[str],
    ok: int,
    body: Body | None = None,
    path: dict[str, str] | None = None,
    **more: Any,
) -> Row:
    """The platform's own: everybody knows that it exists."""
    return Row(route, method, table(may=may, ok=ok, sees=EVERYBODY), path=path or {}, body=body, **more)


def organization(route: str, method: str, may: frozenset[str], ok: int, body: Body | None = None, **path: str) -> Row:
    where = {"public_id": "organization", **path}
    return Row(route, method, table(may=may, ok=ok, sees=ORGANIZATION_SEEN), path=where, body=body, hidden=True)


ROWS: list[Row] = [
    everybody("api-me"),
    everybody("api-schema"),
    Row("api-nowhere", "GET", table(may=frozenset(), ok=0, sees=frozenset())),
    *(Row(route, "GET", dict.fromkeys(CALLERS, 200)) for route in ("healthz", "readyz", "metrics")),
    # Tenancy
    everybody("api-tokens"),
    platform("api-tokens", "POST", EVERYBODY, 201, of(name="t", scopes=["read"], expires_in_days=1)),
    Row(
        "api-token",
        "DELETE",
        table(may=frozenset({"member"}), ok=204, sees=frozenset()),
        path={"public_id": "token"},
        hidden=True,
    ),
    platform("api-users", "GET", PLATFORM, 200),
    platform("api-users", "POST", PLATFORM, 201, of(email="new@example.org", name="New")),
    platform("api-user", "PATCH", PLATFORM, 200, of(platform_role="auditor"), {"public_id": "viewer"}),
    platform("api-user-deactivate", "POST", PLATFORM, 200, of(), {"public_id": "viewer"}),
    everybody("api-organizations"),
    platform("api-organizations", "POST", PLATFORM, 201, of(name="Initech")),
    organization("api-organization", "GET", ORGANIZATION_SEEN, 200),
    organization("api-administrators", "GET", frozenset({"org_admin", "auditor", "platform_admin"}), 200),
    Row(
        "api-administrators",
        "POST",
        table(may=PLATFORM, ok=201, sees=ORGANIZATION_SEEN),
        path={"public_id": "organization"},
        body=of(email="viewer@example.org"),
        hidden=True,
    ),
    organization("api-administrator", "DELETE", PLATFORM, 204, user_id="org_admin"),
    everybody("api-projects"),
    Row(
        "api-projects",
        "POST",
        table(may=frozenset({"org_admin"}), ok=201, sees=ORGANIZATION_SEEN),
        body=lambda ids: {"organization": ids["organization"], "name": "Robotics"},
        hidden=True,
    ),
    read("api-project", PROJECT),
    write("api-project", "PATCH", PROJECT, LEADS, 200, of(name="Seeing"), headers=INSIST),
    write("api-project-close", "POST", PROJECT, frozenset({"org_admin"}), 200, of(reason="Done.")),
    read("api-members", PROJECT),
    write("api-members", "POST", PROJECT, LEADS, 201, of(email="auditor@example.org", role="viewer")),
    write("api-member", "DELETE", {**PROJECT, "user_id": "viewer"}, LEADS, 204),
    # Keys
    read("api-keys", PROJECT),
    write("api-keys", "POST", PROJECT, MEMBERS, 201, of(name="new")),
    read("api-key", {"public_id": "key"}),
    write("api-key", "DELETE", {"public_id": "key"}, MEMBERS, 204),
    # Requests
    everybody("api-requests"),
    everybody("api-inbox"),
    Row(
        "api-requests",
        "POST",
        table(may=MEMBERS, ok=201, sees=READERS),
        body=lambda ids: {"kind": "deployment", "project": ids["project"], "payload": deployment_payload("new")},
        hidden=True,
    ),
    Row(
        "api-request-preview",
        "POST",
        table(may=MEMBERS, ok=200, sees=READERS),
        body=lambda ids: {"kind": "deployment", "project": ids["project"], "payload": deployment_payload("new")},
        hidden=True,
        writes=False,
    ),
    Row(
        "api-requests-decide",
        "POST",
        table(may=EVERYBODY, ok=200, sees=EVERYBODY),
        body=lambda ids: {"requests": [ids["request"]], "verdict": "approve"},
    ),
    read("api-request", REQUEST),
    read("api-request-outlook", REQUEST),
    write("api-request-decide", "POST", REQUEST, LEADS, 200, of(verdict="approve")),
    write("api-request-withdraw", "POST", REQUEST, frozenset({"member"}), 200, of()),
    write("api-request-revoke", "POST", {"public_id": "approved"}, LEADS, 200, of(reason="No longer.")),
    # Fleet
    everybody("api-profiles"),
    platform("api-profiles", "POST", OPERATOR, 201, of(**PROFILE)),
    everybody("api-profile", path={"public_id": "profile"}),
    platform("api-profile", "PATCH", OPERATOR, 200, of(title="Other"), {"public_id": "profile"}, headers=INSIST),
    platform("api-profile-cells", "PUT", OPERATOR, 200, of(**CELL), {"public_id": "profile"}),
    everybody("api-clusters"),
    platform("api-clusters", "POST", OPERATOR, 201, of(name="west")),
    everybody("api-cluster", path={"public_id": "cluster"}),
    platform("api-cluster", "PATCH", OPERATOR, 200, of(enabled=False), {"public_id": "cluster"}),
    everybody("api-nodes"),
    everybody("api-capacity"),
    everybody("api-grants"),
    read("api-grant", {"public_id": "grant"}),
    read("api-grant-holds", {"public_id": "grant"}),
    read("api-project-grants", PROJECT),
    read("api-usage", PROJECT),
    read("api-intervals", PROJECT),
    # Deployments
    everybody("api-deployments"),
    read("api-deployment", DEPLOYMENT),
    write("api-deployment", "PATCH", DEPLOYMENT, MEMBERS, 200, of(replicas_min=1, replicas_max=2), headers=INSIST),
    write("api-deployment", "DELETE", DEPLOYMENT, MEMBERS, 202),
    read("api-deployment-pods", DEPLOYMENT),
    read("api-deployment-manifest", DEPLOYMENT),
    read("api-deployment-timeline", DEPLOYMENT),
    read("api-deployment-revisions", DEPLOYMENT),
    write("api-deployment-revisions", "POST", DEPLOYMENT, MEMBERS, 201, of(context_length=2048, source_file="tiny.gguf")),
    read("api-deployment-events", DEPLOYMENT),
    # Audit
    platform("api-audit", "GET", frozenset({"org_admin", "auditor"}), 200),
]
