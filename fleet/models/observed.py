from __future__ import annotations

from django.db import models
from django.db.models import Q

from fleet.models.clusters import Cluster


class ObservedPod(models.Model):
    """A pod as last seen, by (cluster, uid) (K2). Rows stay after the pod is gone: they are the meter's evidence.

    ``devices`` maps resource name -> effective request (K3). ``project_id`` is the project whose namespace the pod is in;
    ``owner_kind``/``owner_id`` come from the stamped labels, taken only where ``slipway/project`` names that same project
    (labels can be forged); empty means nobody of ours.
    ``status`` holds what the rules need of the raw status, under its Kubernetes names: phase, reason, conditions,
    containerStatuses. The last columns are the merged evidence of ``fleet.domain.evidence``.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253, blank=True)
    owner_kind = models.CharField(max_length=40, blank=True)
    owner_id = models.CharField(max_length=63, blank=True)
    project_id = models.CharField(max_length=63, blank=True)
    generation_stamp = models.CharField(max_length=20, blank=True)
    devices = models.JSONField(default=dict)
    phase = models.CharField(max_length=16, blank=True)
    ready = models.BooleanField(default=False)
    pod_ip = models.CharField(max_length=45, blank=True)
    port = models.PositiveIntegerField(null=True, blank=True)
    status = models.JSONField(default=dict)
    created_at = models.DateTimeField(null=True, blank=True)
    deletion_at = models.DateTimeField(null=True, blank=True)
    resource_version = models.CharField(max_length=40)
    observed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)
    gone_basis = models.CharField(max_length=16, blank=True)
    gone_version = models.PositiveBigIntegerField(default=0)
    seen_version = models.PositiveBigIntegerField(default=0)
    active_at = models.DateTimeField(null=True, blank=True)
    over_at = models.DateTimeField(null=True, blank=True)
    running_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="pod_once")]
        indexes = [
            models.Index(fields=["owner_kind", "owner_id"], name="pod_by_owner"),
            models.Index(fields=["cluster", "node_name"], condition=Q(gone_at=None), name="pod_live_by_node"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ObservedObject(models.Model):
    """Raw metadata and status of any other watched kind, by (cluster, uid); upper floors say which kinds to watch."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="objects_seen")
    uid = models.CharField(max_length=64)
    api_version = models.CharField(max_length=80)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    owner_kind = models.CharField(max_length=40, blank=True)
    owner_id = models.CharField(max_length=63, blank=True)
    metadata = models.JSONField(default=dict)
    status = models.JSONField(default=dict)
    resource_version = models.CharField(max_length=40)
    observed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="object_once")]
        indexes = [models.Index(fields=["owner_kind", "owner_id", "kind"], name="object_by_owner")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
