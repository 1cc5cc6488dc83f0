"""Projects and organizations as an actor may see them (contract A1)."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Organization, Project
from portal.tenancy.selectors.permissions import organizations_seen, projects_where


def project_get(*, actor: Actor, public_id: str) -> Project:
    """The project with its organization; NotFound when it does not exist for ``actor``."""
    project = project_list(actor=actor).filter(public_id=public_id).first()
    if project is None:
        raise NotFound
    return project


def project_list(*, actor: Actor) -> QuerySet[Project]:
    """The projects ``actor`` may read, with their organizations, by name."""
    readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
    return readable.select_related("organization").order_by("name", "pk")


def projects_where_may(*, actor: Actor, permission: Permission) -> QuerySet[Project]:
    """The projects in which ``actor`` may do ``permission``, with their organizations, by name: for choices in forms."""
    return projects_where(actor=actor, permission=permission).select_related("organization").order_by("name", "pk")


def organization_get(*, actor: Actor, public_id: str) -> Organization:
    """NotFound when the organization does not exist for ``actor``."""
    organization = organizations_seen(actor=actor).filter(public_id=public_id).first()
    if organization is None:
        raise NotFound
    return organization


def organization_list(*, actor: Actor) -> QuerySet[Organization]:
    """The organizations that exist for ``actor``, by name."""
    return organizations_seen(actor=actor).order_by("name", "pk")
