from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from fleet.models import Cluster, GpuProfile, Grant
from models_app.domain.phases import Phase
from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models import Project, TenantManager
from portal.work.models import ReconciledRow


def deployment_id() -> str:
    return new_id("dep")


class Deployment(ReconciledRow):
    """A model that a project wants served; its identity outlives its revisions.

    ``name`` is what people and API callers say (the served model name); ``object_name`` is the derived cluster name,
    unique per cluster and never reused (D1). Spec = revision, replicas_min, replicas_max; a change raises generation.
    ``observed`` is what the last pass saw: replicas wanted/ready/pods, applied hash, uid, resourceVersion.
    ``phase`` is the state of contract §2 that the page leads with; ``observed`` and conditions carry the others.
    """

    public_id = models.CharField(max_length=40, unique=True, default=deployment_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="deployments")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="deployments")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="deployments")
    profile = models.ForeignKey(GpuProfile, on_delete=models.PROTECT, related_name="deployments")
    name = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63)
    engine = models.CharField(max_length=24)
    revision = models.PositiveIntegerField(default=1)
    replicas_min = models.PositiveIntegerField(default=1)
    replicas_max = models.PositiveIntegerField(default=1)
    devices_per_replica = models.PositiveIntegerField(default=1)
    phase = models.CharField(
        max_length=12, default=Phase.DECLARED.value, choices=[(phase.value, phase.value) for phase in Phase]
    )
    phase_reason = models.CharField(max_length=60, blank=True)
    phase_message = models.TextField(blank=True)
    phase_since = models.DateTimeField(default=now)
    observed = models.JSONField(default=dict, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    approval_id = models.CharField(max_length=40, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)

    objects = TenantManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(archived_at=None), name="deployment_name_once_per_project"
            ),
            models.UniqueConstraint(fields=["cluster", "object_name"], name="deployment_object_name_once"),
            models.CheckConstraint(condition=Q(replicas_min__lte=F("replicas_max")), name="deployment_replicas_ordered"),
            models.CheckConstraint(condition=Q(devices_per_replica__gt=0), name="deployment_devices_positive"),
            models.CheckConstraint(condition=Q(phase__in=[phase.value for phase in Phase]), name="deployment_phase_known"),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="deployment_due", condition=Q(archived_at=None)),
            models.Index(fields=["project", "-created_at"], name="deployment_by_project"),
            models.Index(fields=["-created_at", "-id"], name="deployment_newest", condition=Q(archived_at=None)),
        ]

    def __str__(self) -> str:
        return self.name
