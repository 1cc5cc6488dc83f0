"""Audit rows as an actor may read them: the audit floor knows no roles, so the rule is applied here."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel.errors import Forbidden
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import (
    organizations_where,
    platform_permissions,
    projects_where,
    require,
)


def audit_list(
    *, actor: Actor, project: Project | None = None, object_kind: str = "", object_id: str = ""
) -> QuerySet[AuditEvent]:
    """Events, newest first: of ``project``, or of all that ``actor`` may audit; Forbidden for those who audit nothing.

    An auditor reads all; an organization's administrator reads what names its projects or itself.
    """
    rows = AuditEvent.objects.order_by("-pk")
    if project is not None:
        require(actor=actor, permission=Permission.AUDIT_READ, project=project)
        rows = rows.filter(project_id=project.public_id)
    elif Permission.AUDIT_READ not in platform_permissions(actor=actor):
        projects = projects_where(actor=actor, permission=Permission.AUDIT_READ)
        organizations = organizations_where(actor=actor, permission=Permission.AUDIT_READ)
        if not organizations.exists():
            raise Forbidden("The audit trail is read by auditors and by administrators of an organization.")
        rows = rows.filter(
            Q(project_id__in=projects.values("public_id")) | Q(organization_id__in=organizations.values("public_id"))
        )
    if object_kind:
        rows = rows.filter(object_kind=object_kind)
    if object_id:
        rows = rows.filter(object_id=object_id)
    return rows
