from django.db import models

from portal.kernel.clock import now


class IdempotencyRecord(models.Model):
    """The answer given to one POST that carried an Idempotency-Key, replayed to every repeat of it for 24 hours."""

    actor_id = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["actor_id", "key"], name="idempotency_once_per_actor")]

    def __str__(self) -> str:
        return f"{self.actor_id} {self.key}"
