from __future__ import annotations

from django.db import models

from models_app.models.deployments import Deployment
from portal.kernel.clock import now
from portal.tenancy.models import Project, TenantManager


class AppliedObject(models.Model):
    """An object in the cluster that a deployment owns, as applied last; ``gone_at`` once it is proven gone."""

    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="applied_objects")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="applied_objects")
    api_version = models.CharField(max_length=80)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    resource_version = models.CharField(max_length=40, blank=True)
    spec_hash = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField()
    manifest = models.JSONField(default=dict)
    applied_at = models.DateTimeField(default=now)
    gone_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "kind", "namespace", "name"],
                condition=models.Q(gone_at=None),
                name="applied_object_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class StateChange(models.Model):
    """One step of a deployment's timeline: the phase it moved to, when, and why."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="state_changes")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="state_changes")
    phase = models.CharField(max_length=12)
    reason = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    at = models.DateTimeField(default=now)

    objects = TenantManager()

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.phase} at {self.at:%Y-%m-%d %H:%M:%S}Z"
