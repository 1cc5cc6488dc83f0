from __future__ import annotations

from django.db import models

from fleet.models import GpuProfile
from models_app.models.deployments import Deployment
from portal.kernel.clock import now
from portal.tenancy.models import Project, TenantManager, User


class Revision(models.Model):
    """An immutable, numbered combination of the four axes: image, artifact, configuration, GPU profile version."""

    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="revisions")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    image = models.CharField(max_length=300)
    backend = models.CharField(max_length=24)
    artifact_source = models.CharField(max_length=300)
    artifact_revision = models.CharField(max_length=80, blank=True)
    model_format = models.CharField(max_length=24)
    configuration = models.JSONField(default=dict)
    profile = models.ForeignKey(GpuProfile, on_delete=models.PROTECT, related_name="revisions")
    profile_version = models.PositiveIntegerField()
    profile_snapshot = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="revisions")
    created_at = models.DateTimeField(default=now)

    objects = TenantManager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "number"], name="revision_number_once"),
            models.CheckConstraint(condition=models.Q(image__contains="@sha256:"), name="revision_image_pinned"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"
