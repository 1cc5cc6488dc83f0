from portal.tenancy.models.memberships import OrganizationMembership, ProjectMembership, Source
from portal.tenancy.models.organizations import Organization, Project, ProjectState
from portal.tenancy.models.people import User
from portal.tenancy.models.scoping import TenantManager, TenantQuerySet, UnscopedQuery, unscoped
from portal.tenancy.models.tokens import ApiToken

__all__ = [
    "ApiToken",
    "Organization",
    "OrganizationMembership",
    "Project",
    "ProjectMembership",
    "ProjectState",
    "Source",
    "TenantManager",
    "TenantQuerySet",
    "UnscopedQuery",
    "User",
    "unscoped",
]
