from __future__ import annotations

from django.db import models

from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models import Project, TenantManager
from portal.work.models import ReconciledRow


def cluster_id() -> str:
    return new_id("clu")


def space_id() -> str:
    return new_id("spc")


class Cluster(models.Model):
    """One Kubernetes cluster. ``credential`` names a kubeconfig in the credentials folder; the row holds no secret.

    ``reachable`` is null until first seen; False keeps everything known about the cluster and bills nothing new (D3).
    """

    public_id = models.CharField(max_length=40, unique=True, default=cluster_id, editable=False)
    name = models.SlugField(max_length=40, unique=True)
    credential = models.CharField(max_length=120)
    enabled = models.BooleanField(default=True)
    reachable = models.BooleanField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    kubernetes_version = models.CharField(max_length=40, blank=True)
    installed_kinds = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A node as last observed; quantities as the API server wrote them."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253)
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    capacity = models.JSONField(default=dict)
    allocatable = models.JSONField(default=dict)
    ready = models.BooleanField(null=True)
    unschedulable = models.BooleanField(default=False)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    resource_version = models.CharField(max_length=40)
    observed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="node_once")]
        indexes = [models.Index(fields=["cluster", "name"], name="node_by_name")]

    def __str__(self) -> str:
        return self.name


class ProjectSpace(ReconciledRow):
    """What one project has on one cluster: namespace, quota fence, limits, network policy, role binding."""

    public_id = models.CharField(max_length=40, unique=True, default=space_id, editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="spaces")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="spaces")
    namespace = models.CharField(max_length=63)
    applied = models.JSONField(default=list, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=now)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "project"], name="space_once"),
            models.UniqueConstraint(fields=["cluster", "namespace"], name="space_namespace_once"),
        ]
        indexes = [models.Index(fields=["next_attempt_at"], name="space_due", condition=models.Q(archived_at=None))]
