"""What changed of one deployment since a watcher looked last: a small read that is repeated while somebody watches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import close_old_connections
from django.db.models import Max

from models_app.models import Deployment, StateChange
from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import projects_where

_STEPS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the timeline; ``id`` grows."""

    id: int
    phase: str
    reason: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Changes:
    """``standing`` changes whenever the row or what was seen of it does; ``gone`` once it is archived."""

    standing: tuple[str, int, int, int, str]
    steps: tuple[Step, ...]
    gone: bool


def newest_step(*, actor: Actor, public_id: str) -> int:
    """The id of the last step of the timeline, 0 when there is none; NotFound when it does not exist for ``actor``."""
    deployment = _watched(actor, public_id)
    newest = StateChange.objects.for_project(deployment.project).filter(deployment=deployment).aggregate(newest=Max("pk"))
    return int(newest["newest"] or 0)


def changes_since(*, actor: Actor, public_id: str, after: int) -> Changes:
    """The standing and the steps with an id above ``after``, oldest first; two queries.

    Asks for the permission again each time, and gives its database connection back, since a watcher sits for minutes.
    """
    try:
        deployment = _watched(actor, public_id)
        steps = (
            StateChange.objects.for_project(deployment.project)
            .filter(deployment=deployment, pk__gt=after)
            .order_by("pk")[:_STEPS_AT_ONCE]
        )
        return Changes(
            standing=(
                deployment.phase,
                deployment.version,
                deployment.generation,
                deployment.observed_generation,
                deployment.phase_message,
            ),
            steps=tuple(Step(row.pk, row.phase, row.reason, row.message, row.at) for row in steps),
            gone=deployment.archived_at is not None,
        )
    finally:
        close_old_connections()


def _watched(actor: Actor, public_id: str) -> Deployment:
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    deployment: Deployment | None = (
        Deployment.objects.for_projects(readable.values("pk")).select_related("project").filter(public_id=public_id).first()
    )
    if deployment is None:
        raise NotFound
    return deployment
