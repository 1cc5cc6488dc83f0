"""Organizations and their projects: make, rename, close."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import F

from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict, InvalidInput, NotFound, Stale
from portal.kernel.names import slugify
from portal.tenancy.closing import endings
from portal.tenancy.domain.namespaces import namespace_candidates
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Organization, Project, ProjectState
from portal.tenancy.selectors.permissions import projects_where, require, require_organization, require_platform

_NAME_MAX = 120
_SLUG_MAX = 40


def organization_create(*, actor: Actor, name: str, slug: str = "") -> Organization:
    """A new organization; an empty ``slug`` is made from ``name``. Platform admins only; Conflict when taken."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    name, slug = _name_and_slug(name, slug)
    with transaction.atomic(durable=True):
        try:
            with transaction.atomic():
                organization = Organization.objects.create(name=name, slug=slug)
        except IntegrityError as error:
            raise Conflict(
                f"There is an organization {slug!r} already: choose another slug.", fields={"slug": ["Taken."]}
            ) from error
        event_record(
            actor=actor,
            action="organization.create",
            object_kind="organization",
            object_id=organization.public_id,
            organization_id=organization.public_id,
            after={"slug": slug, "name": name},
        )
    return organization


def project_create(
    *, actor: Actor, organization: Organization, name: str, slug: str = "", time_zone: str = "UTC"
) -> Project:
    """A new project. ``slug`` is made from ``name`` when empty; its namespace is derived here once and never changes (D1).

    ``time_zone`` is the IANA zone its months are counted in (K6). A slug stays taken when its project is closed, so that
    a new project never meets old objects of the same name.
    """
    require_organization(actor=actor, permission=Permission.PROJECT_CREATE, organization=organization)
    name, slug = _name_and_slug(name, slug)
    time_zone = _time_zone(time_zone)
    with transaction.atomic(durable=True):
        Organization.objects.select_for_update(of=("self",), no_key=True).get(pk=organization.pk)
        if Project.objects.filter(organization=organization, slug=slug).exists():
            raise Conflict(
                f"{organization.name} has, or had, a project {slug!r}: choose another slug.", fields={"slug": ["Taken."]}
            )
        project = _project_insert(organization, name, slug, time_zone)
        event_record(
            actor=actor,
            action="project.create",
            object_kind="project",
            object_id=project.public_id,
            project_id=project.public_id,
            organization_id=organization.public_id,
            after=_snapshot(project),
        )
    return project


def project_rename(
    *, actor: Actor, public_id: str, name: str, time_zone: str | None = None, version: int | None = None
) -> Project:
    """Another shown name, and another zone when given; slug, namespace, keys and ledger stay as they are (D1, Q3)."""
    with transaction.atomic(durable=True):
        project = _locked(actor, public_id)
        require(actor=actor, permission=Permission.MEMBER_MANAGE, project=project)
        _check_version(project, version)
        before = _snapshot(project)
        project.name = _name(name)
        project.time_zone = project.time_zone if time_zone is None else _time_zone(time_zone)
        after = _snapshot(project)
        if after == before:
            return project
        project.version += 1
        project.save(update_fields=["name", "time_zone", "version"])
        _record(actor, "project.rename", project, before, after)
    return project


def project_close(*, actor: Actor, public_id: str, reason: str = "", version: int | None = None) -> Project:
    """Close the project and end what it has: open requests, grants, deployments, keys. A closed one stays as it is."""
    with transaction.atomic(durable=True):
        project = _locked(actor, public_id)
        require(actor=actor, permission=Permission.PROJECT_CLOSE, project=project)
        if project.state == ProjectState.CLOSED:
            return project
        _check_version(project, version)
        before = _snapshot(project)
        moved = Project.objects.filter(pk=project.pk, state=ProjectState.ACTIVE.value).update(
            state=ProjectState.CLOSED.value, version=F("version") + 1
        )
        if not moved:
            raise Conflict("The project was changed meanwhile: load it again.")
        project.refresh_from_db(fields=["state", "version"])
        _record(actor, "project.close", project, before, _snapshot(project), reason)
        for ending in endings():
            ending(actor=actor, project=project)
    return project


def _project_insert(organization: Organization, name: str, slug: str, time_zone: str) -> Project:
    for namespace in namespace_candidates(organization.slug, slug):
        try:
            with transaction.atomic():
                return Project.objects.create(
                    organization=organization, slug=slug, name=name, namespace=namespace, time_zone=time_zone
                )
        except IntegrityError:  # another organization's project derives the same namespace
            continue
    raise Conflict(f"No free namespace for {slug!r}: choose another slug.", fields={"slug": ["Taken."]})


def _locked(actor: Actor, public_id: str) -> Project:
    # no_key: rows that name the project are written meanwhile; a full lock would meet an approval in a deadlock.
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ).values("pk")
    project = (
        Project.objects.select_related("organization")
        .select_for_update(of=("self",), no_key=True)
        .filter(pk__in=readable, public_id=public_id)
        .first()
    )
    if project is None:
        raise NotFound
    return project


def _check_version(project: Project, version: int | None) -> None:
    if version is not None and version != project.version:
        raise Stale("The project was changed since you loaded it: load it again and repeat.")


def _record(
    actor: Actor, action: str, project: Project, before: dict[str, str], after: dict[str, str], reason: str = ""
) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="project",
        object_id=project.public_id,
        project_id=project.public_id,
        organization_id=project.organization.public_id,
        before=before,
        after=after,
        reason=reason,
    )


def _snapshot(project: Project) -> dict[str, str]:
    return {
        "slug": project.slug,
        "name": project.name,
        "namespace": project.namespace,
        "time_zone": project.time_zone,
        "state": project.state,
    }


def _name_and_slug(name: str, slug: str) -> tuple[str, str]:
    name = _name(name)
    derived = slugify(slug or name)
    if slug and derived != slug:
        raise InvalidInput(
            "The slug is not valid.",
            fields={"slug": ["Lower-case letters, digits and single dashes, starting with a letter."]},
        )
    if not derived or len(derived) > _SLUG_MAX:
        raise InvalidInput(
            "The slug is not valid.", fields={"slug": [f"1 to {_SLUG_MAX} letters, digits and dashes: give one."]}
        )
    return name, derived


def _name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _NAME_MAX:
        raise InvalidInput("The name is not valid.", fields={"name": [f"1 to {_NAME_MAX} characters."]})
    return name


def _time_zone(time_zone: str) -> str:
    try:
        return ZoneInfo(time_zone).key
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput(
            "The time zone is not known.", fields={"time_zone": ["An IANA zone such as Europe/Berlin or UTC."]}
        ) from error
