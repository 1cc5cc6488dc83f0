from __future__ import annotations

from enum import StrEnum

from django.db import models

from portal.kernel.clock import now
from portal.kernel.ids import new_id


def organization_id() -> str:
    return new_id("org")


def project_id() -> str:
    return new_id("prj")


class ProjectState(StrEnum):
    ACTIVE = "active"
    CLOSED = "closed"


class Organization(models.Model):
    public_id = models.CharField(max_length=40, unique=True, default=organization_id, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.name


class Project(models.Model):
    """What quotas, GPU-hours, keys and namespaces belong to. ``namespace`` is derived once and never changes (D1)."""

    public_id = models.CharField(max_length=40, unique=True, default=project_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="projects")
    slug = models.SlugField(max_length=40)
    name = models.CharField(max_length=120)
    namespace = models.CharField(max_length=63, unique=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    state = models.CharField(
        max_length=8, default=ProjectState.ACTIVE.value, choices=[(state.value, state.value) for state in ProjectState]
    )
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="project_slug_once_per_organization"),
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in ProjectState]), name="project_state_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name
