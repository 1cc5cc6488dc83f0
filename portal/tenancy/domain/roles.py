"""Roles and what each may do (contract §3): the one table that answers "may I" and "which ones"."""

from __future__ import annotations

from enum import StrEnum


class ProjectRole(StrEnum):
    VIEWER = "viewer"
    MEMBER = "member"
    LEAD = "lead"


class OrganizationRole(StrEnum):
    ADMIN = "org_admin"


class PlatformRole(StrEnum):
    NONE = ""
    FLEET_OPERATOR = "fleet_operator"
    AUDITOR = "auditor"
    PLATFORM_ADMIN = "platform_admin"


Role = ProjectRole | OrganizationRole | PlatformRole


class Permission(StrEnum):
    """An act on a project's objects, an organization's, or the platform's, named ``<noun>.<verb>``."""

    PROJECT_READ = "project.read"
    REQUEST_CREATE = "request.create"
    REQUEST_DECIDE_DEPLOYMENT = "request.decide_deployment"
    REQUEST_DECIDE_GRANT = "request.decide_grant"
    DEPLOYMENT_CHANGE = "deployment.change"
    DEPLOYMENT_DELETE = "deployment.delete"
    KEY_MANAGE_OWN = "key.manage_own"
    KEY_REVOKE_OWN = "key.revoke_own"
    KEY_MANAGE = "key.manage"
    MEMBER_MANAGE = "member.manage"
    PROJECT_CREATE = "project.create"
    PROJECT_CLOSE = "project.close"
    GRANT_REVOKE = "grant.revoke"
    FLEET_READ = "fleet.read"
    FLEET_MANAGE = "fleet.manage"
    AUDIT_READ = "audit.read"
    ORGANIZATION_MANAGE = "organization.manage"


_VIEWER = frozenset({Permission.PROJECT_READ})
_MEMBER = _VIEWER | {
    Permission.REQUEST_CREATE,
    Permission.DEPLOYMENT_CHANGE,
    Permission.DEPLOYMENT_DELETE,
    Permission.KEY_MANAGE_OWN,
    Permission.KEY_REVOKE_OWN,
}
_LEAD = _MEMBER | {Permission.REQUEST_DECIDE_DEPLOYMENT, Permission.KEY_MANAGE, Permission.MEMBER_MANAGE}
_ORG_ADMIN = _LEAD | {
    Permission.REQUEST_DECIDE_GRANT,
    Permission.PROJECT_CREATE,
    Permission.PROJECT_CLOSE,
    Permission.GRANT_REVOKE,
    Permission.AUDIT_READ,
}

GRANTED: dict[Role, frozenset[Permission]] = {
    ProjectRole.VIEWER: _VIEWER,
    ProjectRole.MEMBER: _MEMBER,
    ProjectRole.LEAD: _LEAD,
    OrganizationRole.ADMIN: _ORG_ADMIN,
    PlatformRole.NONE: frozenset(),
    PlatformRole.FLEET_OPERATOR: frozenset({Permission.FLEET_READ, Permission.FLEET_MANAGE}),
    PlatformRole.AUDITOR: frozenset({Permission.PROJECT_READ, Permission.FLEET_READ, Permission.AUDIT_READ}),
    PlatformRole.PLATFORM_ADMIN: frozenset({Permission.FLEET_READ, Permission.ORGANIZATION_MANAGE}),
}
"""Every signed-in person may also see the fleet page's totals; tenant names on it follow PROJECT_READ."""


READS = frozenset({Permission.PROJECT_READ, Permission.FLEET_READ, Permission.AUDIT_READ})
"""What a token with the read scope alone may do."""

NEEDS_OPEN_PROJECT = frozenset(
    {
        Permission.REQUEST_CREATE,
        Permission.REQUEST_DECIDE_DEPLOYMENT,
        Permission.REQUEST_DECIDE_GRANT,
        Permission.DEPLOYMENT_CHANGE,
        Permission.KEY_MANAGE_OWN,
        Permission.MEMBER_MANAGE,
    }
)
"""Acts that a closed project refuses; reading, deleting and revoking go on."""


def roles_granting(permission: Permission) -> frozenset[Role]:
    """The roles whose holders may do ``permission``, each in its own scope."""
    return frozenset(role for role, permissions in GRANTED.items() if permission in permissions)
