from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from fleet.domain.grant_states import GrantState
from fleet.models.profiles import GpuProfile
from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models import Project, TenantManager


def grant_id() -> str:
    return new_id("grt")


class Grant(models.Model):
    """What a project may use of one GPU profile for a period. ``devices`` is nominal, at once."""

    public_id = models.CharField(max_length=40, unique=True, default=grant_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="grants")
    profile = models.ForeignKey(GpuProfile, on_delete=models.PROTECT, related_name="grants")
    devices = models.PositiveIntegerField()
    borrowing_limit = models.PositiveIntegerField(default=0)
    gpu_hours_per_month = models.PositiveIntegerField(null=True, blank=True)
    state = models.CharField(
        max_length=8, default=GrantState.ACTIVE.value, choices=[(state.value, state.value) for state in GrantState]
    )
    starts_at = models.DateTimeField(default=now)
    ends_at = models.DateTimeField(null=True, blank=True)
    approval_id = models.CharField(max_length=40, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=[state.value for state in GrantState]), name="grant_state_known"),
            models.CheckConstraint(condition=Q(ends_at=None) | Q(ends_at__gt=F("starts_at")), name="grant_period_forward"),
            models.UniqueConstraint(
                fields=["project", "profile"],
                condition=Q(state__in=["pending", "active", "expiring"]),
                name="grant_one_live_per_profile",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id}: {self.devices} devices"


class QuotaHold(models.Model):
    """Devices of a grant that one consumer holds, from approval until its last pod is proven gone (Q1).

    The consumer lives above and is named as text. ``devices`` never exceeds what the grant allowed when it was raised.
    """

    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="holds")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="holds")
    consumer_kind = models.CharField(max_length=40)
    consumer_id = models.CharField(max_length=40)
    devices = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["consumer_kind", "consumer_id"], condition=Q(ended_at=None), name="hold_one_open_per_consumer"
            )
        ]
        indexes = [models.Index(fields=["grant"], condition=Q(ended_at=None), name="hold_open_by_grant")]

    def __str__(self) -> str:
        return f"{self.devices} devices for {self.consumer_kind} {self.consumer_id}"
