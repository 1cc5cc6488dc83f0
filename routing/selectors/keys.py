"""Which keys a project has; never their secrets."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import projects_where, require
from routing.models import ApiKey


def key_list(*, actor: Actor, project: Project) -> QuerySet[ApiKey]:
    """The keys of ``project`` with who made them, newest first, ended ones included; NotFound for strangers."""
    require(actor=actor, permission=Permission.PROJECT_READ, project=project)
    keys: QuerySet[ApiKey] = ApiKey.objects.for_project(project).select_related("created_by", "project")
    return keys.order_by("-created_at", "-id")


def key_get(*, actor: Actor, public_id: str) -> ApiKey:
    """One key that the actor may see; NotFound otherwise (A1)."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    key: ApiKey | None = (
        ApiKey.objects.for_projects(readable).select_related("created_by", "project").filter(public_id=public_id).first()
    )
    if key is None:
        raise NotFound
    return key
