"""Who is in a project or an organization, with which role and from where."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.audit.domain.actors import Actor
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Organization, OrganizationMembership, Project, ProjectMembership
from portal.tenancy.selectors.permissions import actor_may, require, require_organization


def membership_list(*, actor: Actor, project: Project) -> QuerySet[ProjectMembership]:
    """The members of ``project`` with their users, by name; NotFound when ``actor`` may not read it."""
    require(actor=actor, permission=Permission.PROJECT_READ, project=project)
    return (
        ProjectMembership.objects.filter(project=project)
        .select_related("user", "project")
        .order_by("user__name", "user__pk", "source")
    )


def organization_membership_list(*, actor: Actor, organization: Organization) -> QuerySet[OrganizationMembership]:
    """The administrators of ``organization``, by name, for those who audit or manage it."""
    if not actor_may(actor=actor, permission=Permission.ORGANIZATION_MANAGE, organization=organization):
        require_organization(actor=actor, permission=Permission.AUDIT_READ, organization=organization)
    return (
        OrganizationMembership.objects.filter(organization=organization)
        .select_related("user", "organization")
        .order_by("user__name", "user__pk", "source")
    )
