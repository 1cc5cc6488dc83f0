from __future__ import annotations

from django.db import models

from portal.approvals.domain.states import Verdict
from portal.approvals.models.requests import Request
from portal.kernel.clock import now
from portal.tenancy.models import User


class Decision(models.Model):
    """What one person decided at one stage; the database allows one per stage."""

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="decisions")
    stage = models.PositiveSmallIntegerField()
    verdict = models.CharField(max_length=8, choices=[(verdict.value, verdict.value) for verdict in Verdict])
    decider = models.ForeignKey(User, on_delete=models.PROTECT, related_name="decisions")
    reason = models.TextField(blank=True)
    at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "stage"], name="decision_once_per_stage")]

    def __str__(self) -> str:
        return f"{self.verdict} of request {self.request_id} stage {self.stage}"
