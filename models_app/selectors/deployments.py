"""Deployments as an actor may see them (contract A1), and everything their page shows."""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from django.db.models import Count, QuerySet

from fleet.models import QuotaHold
from models_app.domain.phases import Phase
from models_app.domain.sightings import sighting_of
from models_app.models import AppliedObject, Deployment, Revision, StateChange
from models_app.selectors.declarations import deployment_facts, ready_of, report_of
from models_app.selectors.specs import CONSUMER_KIND
from models_app.selectors.views import DeploymentCard, DeploymentView, ManifestView
from portal.audit.domain.actors import Actor
from portal.kernel.errors import InvalidInput, NotFound
from portal.tenancy.domain.roles import NEEDS_OPEN_PROJECT, Permission
from portal.tenancy.models import Project, ProjectState
from portal.tenancy.selectors.permissions import permissions_of, projects_where, require
from portal.work.models import Desired

TIMELINE_SHOWN = 200


def deployment_get(*, actor: Actor, public_id: str) -> Deployment:
    """The deployment, archived ones too; NotFound when it does not exist for ``actor``."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    deployment = _joined(Deployment.objects.for_projects(readable.values("pk"))).filter(public_id=public_id).first()
    if deployment is None:
        raise NotFound
    return deployment


def deployment_list(
    *, actor: Actor, project: Project | None = None, phase: Phase | str | None = None, archived: bool = False
) -> QuerySet[Deployment]:
    """The deployments of the projects ``actor`` may read (or of ``project``), newest first, with what a row shows.

    ``archived`` True gives those that are gone instead. InvalidInput for an unknown ``phase``.
    """
    if project is not None:
        require(actor=actor, permission=Permission.PROJECT_READ, project=project)
        rows = Deployment.objects.for_project(project)
    else:
        rows = Deployment.objects.for_projects(projects_where(actor=actor, permission=Permission.PROJECT_READ).values("pk"))
    rows = rows.filter(archived_at__isnull=not archived)
    if phase:
        rows = rows.filter(phase=_phase(phase).value)
    return _joined(rows).order_by("-created_at", "-pk")


def deployment_card(deployment: Deployment) -> DeploymentCard:
    """``deployment`` (of ``deployment_list``) with its replica counts; no query."""
    ready, wanted = ready_of(deployment)
    return DeploymentCard(deployment=deployment, ready=ready, wanted=wanted)


def deployment_page(*, actor: Actor, public_id: str) -> DeploymentView:
    """Everything the page shows, in a fixed number of queries; NotFound when it does not exist for ``actor``."""
    deployment = deployment_get(actor=actor, public_id=public_id)
    project = deployment.project
    permissions = permissions_of(actor=actor, project=project)
    revisions = tuple(
        Revision.objects.for_project(project).filter(deployment=deployment).select_related("created_by", "profile")
    )
    held = held_devices(deployment)
    seen = sighting_of(deployment.observed)
    standing = deployment.archived_at is None and deployment.desired == Desired.PRESENT
    return DeploymentView(
        deployment=deployment,
        revision=next(item for item in revisions if item.number == deployment.revision),
        facts=deployment_facts(deployment, held_devices=held),
        conditions=tuple(deployment.conditions),
        pods=seen.pods if seen else (),
        events=seen.events if seen else (),
        manifests=deployment_manifests(deployment=deployment),
        timeline=tuple(StateChange.objects.for_project(project).filter(deployment=deployment)[:TIMELINE_SHOWN]),
        revisions=revisions,
        held_devices=held,
        observed_at=deployment.observed_at,
        may_change=standing and _may(Permission.DEPLOYMENT_CHANGE, permissions, project),
        may_delete=standing and _may(Permission.DEPLOYMENT_DELETE, permissions, project),
        report=report_of(deployment),
    )


def deployment_manifests(*, deployment: Deployment) -> tuple[ManifestView, ...]:
    """The objects as applied last, those proven gone after those that stand."""
    rows = AppliedObject.objects.for_project(deployment.project).filter(deployment=deployment).order_by("kind", "pk")
    views = [
        ManifestView(
            api_version=row.api_version,
            kind=row.kind,
            namespace=row.namespace,
            name=row.name,
            uid=row.uid,
            generation=row.generation,
            applied_at=row.applied_at,
            gone_at=row.gone_at,
            manifest=row.manifest,
            yaml=yaml.safe_dump(row.manifest, sort_keys=False, allow_unicode=True),
        )
        for row in rows
    ]
    return tuple(sorted(views, key=lambda view: view.gone_at is not None))


def deployment_timeline(*, actor: Actor, public_id: str) -> QuerySet[StateChange]:
    """The steps of a deployment's life, newest first; NotFound when it does not exist for ``actor``."""
    deployment = deployment_get(actor=actor, public_id=public_id)
    rows: QuerySet[StateChange] = StateChange.objects.for_project(deployment.project).filter(deployment=deployment)
    return rows.order_by("-at", "-pk")


def deployment_counts(*, actor: Actor) -> dict[str, int]:
    """Phase -> how many standing deployments ``actor`` sees in it; phases with none are left out."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    rows = Deployment.objects.for_projects(readable.values("pk")).filter(archived_at=None).order_by()
    return dict(rows.values_list("phase").annotate(number=Count("pk")))


@dataclass(frozen=True, slots=True)
class NameTaken:
    """Why a name cannot be taken now. ``passing``: its holder is on its way out, so that waiting helps (C21)."""

    text: str
    passing: bool


def name_taken(*, project: Project, name: str) -> NameTaken | None:
    """Who has the name in the project, None when nobody; says what a deletion waits for (C21)."""
    standing = Deployment.objects.for_project(project).filter(archived_at=None, name=name).first()
    if standing is None:
        return None
    if standing.desired == Desired.PRESENT:
        text = f"The name “{name}” is taken in this project: choose another, or delete that deployment first."
        return NameTaken(text, passing=False)
    seen = sighting_of(standing.observed)
    held = ", ".join(seen.workload.finalizers) if seen else ""
    why = f", held by {held}" if held else ""
    text = f"The deployment “{name}” is still deleting{why}: wait until it is gone, or choose another name."
    return NameTaken(text, passing=True)


def held_devices(deployment: Deployment) -> int:
    """The devices its open quota hold has; 0 without one."""
    holds = QuotaHold.objects.for_project(deployment.project).filter(
        consumer_kind=CONSUMER_KIND, consumer_id=deployment.public_id, ended_at=None
    )
    return holds.values_list("devices", flat=True).first() or 0


def _joined(rows: QuerySet[Deployment]) -> QuerySet[Deployment]:
    return rows.select_related("project__organization", "cluster", "profile", "grant")


def _may(permission: Permission, held: frozenset[Permission], project: Project) -> bool:
    closed = project.state == ProjectState.CLOSED and permission in NEEDS_OPEN_PROJECT
    return permission in held and not closed


def _phase(phase: Phase | str) -> Phase:
    try:
        return Phase(phase)
    except ValueError as error:
        raise InvalidInput("The phase is not known.", fields={"phase": [f"One of: {', '.join(Phase)}."]}) from error
