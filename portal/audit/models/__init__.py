"""Append-only events: the database refuses UPDATE, DELETE and TRUNCATE (migration 0002)."""

from django.db import models

from portal.audit.domain.actors import ActorKind, Channel
from portal.kernel.clock import now


class AuditEvent(models.Model):
    """One object changed by one act. Holds ids only; names and addresses live elsewhere."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(default=now)
    actor_kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in ActorKind])
    actor_id = models.CharField(max_length=64)
    channel = models.CharField(max_length=20, choices=[(channel.value, channel.value) for channel in Channel])
    token_id = models.CharField(max_length=40, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=64)
    object_kind = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    project_id = models.CharField(max_length=40, blank=True)
    organization_id = models.CharField(max_length=40, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["object_kind", "object_id", "-id"], name="audit_by_object"),
            models.Index(fields=["project_id", "-id"], name="audit_by_project"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(actor_kind__in=[kind.value for kind in ActorKind]), name="audit_actor_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(channel__in=[channel.value for channel in Channel]), name="audit_channel_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_kind} {self.object_id}"
