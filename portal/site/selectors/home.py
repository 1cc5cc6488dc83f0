"""A person's start page: what waits for them, what they wait for, their projects' use against grant, what changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from fleet.selectors.grants import GrantUse, grants_with_use_of
from models_app.models import Deployment, StateChange
from portal.approvals.domain.states import RequestState
from portal.approvals.models import Request
from portal.approvals.selectors.requests import own_waiting_list, request_list
from portal.audit.domain.actors import Actor
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import permissions_by_project
from portal.tenancy.selectors.projects import project_list

PROJECTS_SHOWN = 30
CHANGES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """``grants`` are live ones. ``phases``: (phase, how many standing deployments)."""

    project: Project
    grants: tuple[GrantUse, ...]
    phases: tuple[tuple[str, int], ...]
    may_ask: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened; ``kind`` is "deployment" or "request", ``word`` its new state."""

    at: datetime
    kind: str
    public_id: str
    name: str
    word: str
    text: str
    project: str


@dataclass(frozen=True, slots=True)
class Home:
    """``waiting`` are the reader's own requests that others (or the cluster) still work on."""

    projects: tuple[ProjectLine, ...]
    more_projects: bool
    waiting: tuple[Request, ...]
    changes: tuple[Change, ...]


def home_page(*, actor: Actor) -> Home:
    """Everything of the start page in a fixed number of queries."""
    projects = list(project_list(actor=actor)[: PROJECTS_SHOWN + 1])
    shown = projects[:PROJECTS_SHOWN]
    may = permissions_by_project(actor=actor)
    grants: dict[int, list[GrantUse]] = {}
    for use in grants_with_use_of(actor=actor):
        grants.setdefault(use.grant.project_id, []).append(use)
    phases = _phases(shown)
    lines = tuple(
        ProjectLine(
            project=project,
            grants=tuple(grants.get(project.pk, ())),
            phases=tuple(phases.get(project.pk, ())),
            may_ask=Permission.REQUEST_CREATE in may.get(project.pk, frozenset()) and project.state == "active",
        )
        for project in shown
    )
    return Home(
        projects=lines,
        more_projects=len(projects) > PROJECTS_SHOWN,
        waiting=tuple(own_waiting_list(actor=actor)[:20]),
        changes=_changes(actor),
    )


def _phases(projects: list[Project]) -> dict[int, list[tuple[str, int]]]:
    counted: dict[int, list[tuple[str, int]]] = {}
    ids = Project.objects.filter(pk__in=[project.pk for project in projects])
    rows = Deployment.objects.for_projects(ids).filter(archived_at=None).order_by("phase")
    for project_id, phase, number in rows.values_list("project_id", "phase").annotate(number=Count("pk")):
        counted.setdefault(project_id, []).append((phase, number))
    return counted


def _changes(actor: Actor) -> tuple[Change, ...]:
    readable = project_list(actor=actor).order_by().values("pk")
    steps = (
        StateChange.objects.for_projects(readable)
        .select_related("deployment", "project")
        .order_by("-at", "-pk")[:CHANGES_SHOWN]
    )
    decided = (
        request_list(actor=actor)
        .prefetch_related(None)
        .exclude(state=RequestState.DRAFT.value)
        .exclude(decided_at=None)
        .order_by("-decided_at", "-pk")[:CHANGES_SHOWN]
    )
    found = [
        Change(
            at=step.at,
            kind="deployment",
            public_id=step.deployment.public_id,
            name=step.deployment.name,
            word=step.phase,
            text=step.message,
            project=step.project.name,
        )
        for step in steps
    ]
    found += [
        Change(
            at=row.decided_at,
            kind="request",
            public_id=row.public_id,
            name=row.title,
            word=row.state,
            text=row.outcome,
            project=row.project.name,
        )
        for row in decided
        if row.decided_at is not None
    ]
    return tuple(sorted(found, key=lambda change: change.at, reverse=True)[:CHANGES_SHOWN])
