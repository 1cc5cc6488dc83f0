"""The columns of a row that a loop makes true (design §3)."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from portal.kernel.clock import now


class Desired(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"


class ReconciledRow(models.Model):
    """Spec lives in the subclass; a change of it raises ``generation`` in the same UPDATE.

    Dirty = ``generation`` differs from ``observed_generation``, or ``next_attempt_at`` is due (retry and full resync
    share that column: a settled pass sets it one resync ahead). ``lease_token`` fences what a pass may write back.
    ``attempts`` counts claims since the last success (the backoff); ``crashes`` those that ended without any record.
    A row that owns cluster objects is never deleted by cascade: ``desired`` becomes absent, the loop removes them, then
    ``archived_at`` is set.
    """

    desired = models.CharField(
        max_length=8, default=Desired.PRESENT.value, choices=[(desired.value, desired.value) for desired in Desired]
    )
    generation = models.PositiveBigIntegerField(default=1)
    observed_generation = models.PositiveBigIntegerField(default=0)
    conditions = models.JSONField(default=list, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    crashes = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=now)
    dirty_since = models.DateTimeField(default=now, null=True, blank=True)
    last_error = models.TextField(blank=True)
    set_aside_reason = models.TextField(blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} generation {self.generation}"
