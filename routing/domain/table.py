"""The route table: which key opens which project, which model of a project is where. Plain values, replaced whole.

A table is read once from the database and never changed: a new one takes its place in one assignment, so no half of a
revocation is ever visible and nothing cached can outlive it (contract G4, C39).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """One pod's own address. ``draining``: it finishes what it has and gets nothing new (design §5, G5)."""

    ip: str
    port: int
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One served model. ``deployment_id`` names the upstream cluster; callers say ``model`` within their project."""

    deployment_id: str
    project_id: str
    model: str
    created: int = 0
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """What the gateway knows of a key: whose it is and until when; the secret itself is known to its holder only."""

    key_id: str
    project_id: str
    expires_at: datetime | None = None


@dataclass(frozen=True)
class RouteTable:
    """``keys`` by the SHA-256 (hex) of the secret: only those in force in projects that are open.

    ``read_at`` is the database's own clock at the reading, so that tables of several processes can be put in order.
    """

    read_at: datetime
    routes: tuple[Route, ...] = ()
    keys: dict[str, Key] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_name = {(route.project_id, route.model): route for route in self.routes}
        by_project: dict[str, list[Route]] = {}
        for route in sorted(self.routes, key=lambda one: one.model):
            by_project.setdefault(route.project_id, []).append(route)
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_by_project", {project: tuple(routes) for project, routes in by_project.items()})

    def key(self, secret_sha256: str, at: datetime) -> Key | None:
        """The key in force at ``at`` behind this digest; unknown, revoked and expired ones all answer None."""
        key = self.keys.get(secret_sha256)
        if key is None or (key.expires_at is not None and key.expires_at <= at):
            return None
        return key

    def route(self, project_id: str, model: str) -> Route | None:
        """The model of that name in this project. One lookup: unknown and foreign names cost the same (C40)."""
        by_name: dict[tuple[str, str], Route] = self._by_name  # type: ignore[attr-defined]
        return by_name.get((project_id, model))

    def models(self, project_id: str) -> tuple[Route, ...]:
        """Exactly the models ``route`` finds for this project, by name (G4: the list equals what a call allows)."""
        by_project: dict[str, tuple[Route, ...]] = self._by_project  # type: ignore[attr-defined]
        return by_project.get(project_id, ())
