from __future__ import annotations

from enum import StrEnum

from django.db import models

from portal.kernel.clock import now
from portal.tenancy.domain.roles import OrganizationRole, ProjectRole
from portal.tenancy.models.organizations import Organization, Project
from portal.tenancy.models.people import User


class Source(StrEnum):
    """Identity-provider memberships follow the claim at every login; manual ones are never touched by it (A1)."""

    MANUAL = "manual"
    IDENTITY_PROVIDER = "identity_provider"


class ProjectMembership(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="project_memberships")
    role = models.CharField(max_length=8, choices=[(role.value, role.value) for role in ProjectRole])
    source = models.CharField(
        max_length=20, default=Source.MANUAL.value, choices=[(source.value, source.value) for source in Source]
    )
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user", "source"], name="project_membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in ProjectRole]), name="project_membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of project {self.project_id}"


class OrganizationMembership(models.Model):
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="organization_memberships")
    role = models.CharField(max_length=12, choices=[(role.value, role.value) for role in OrganizationRole])
    source = models.CharField(
        max_length=20, default=Source.MANUAL.value, choices=[(source.value, source.value) for source in Source]
    )
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "user", "source"], name="organization_membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in OrganizationRole]),
                name="organization_membership_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of organization {self.organization_id}"
