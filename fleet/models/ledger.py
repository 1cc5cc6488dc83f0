from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q

from fleet.domain.metering import EndBasis, StartBasis
from fleet.models.clusters import Cluster
from portal.kernel.clock import now


class TsTzRange(Func):
    """``tstzrange(start, end)``: half-open, as contract K1 counts."""

    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class GpuInterval(models.Model):
    """A pod's hold on its devices of one resource, [started_at, ended_at) (K1); the row that is billed.

    ``devices`` are slots of ``resource_name``; ``gpu_equiv_ppm`` is gpu_equiv of one slot in millionths, null = unknown
    shape (K4). Consumer and project are text, as observed on the pod when the interval opened. Two exclusion rules make
    double billing impossible: one pod uid never overlaps itself on a resource.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="gpu_intervals")
    pod_uid = models.CharField(max_length=64)
    resource_name = models.CharField(max_length=80)
    namespace = models.CharField(max_length=63)
    pod_name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253, blank=True)
    project_id = models.CharField(max_length=40, blank=True)
    consumer_kind = models.CharField(max_length=40, blank=True)
    consumer_id = models.CharField(max_length=63, blank=True)
    profile_name = models.CharField(max_length=40, blank=True)
    devices = models.PositiveIntegerField()
    gpu_equiv_ppm = models.PositiveIntegerField(null=True, blank=True)
    started_at = models.DateTimeField()
    start_basis = models.CharField(max_length=20, choices=[(basis.value, basis.value) for basis in StartBasis])
    running_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_basis = models.CharField(max_length=20, blank=True, choices=[(basis.value, basis.value) for basis in EndBasis])
    end_reason = models.CharField(max_length=40, blank=True)
    uncertain_us = models.PositiveBigIntegerField(default=0)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(fields=["project_id", "started_at", "id"], name="interval_by_project"),
            models.Index(fields=["consumer_kind", "consumer_id"], name="interval_by_consumer"),
            models.Index(fields=["cluster", "node_name"], condition=Q(ended_at=None), name="interval_open_by_node"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "pod_uid", "resource_name"], name="interval_once_per_pod"),
            models.CheckConstraint(condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")), name="interval_forward"),
            models.CheckConstraint(condition=Q(devices__gt=0), name="interval_devices_positive"),
            ExclusionConstraint(
                name="interval_never_overlaps",
                expressions=[
                    ("cluster", RangeOperators.EQUAL),
                    ("pod_uid", RangeOperators.EQUAL),
                    ("resource_name", RangeOperators.EQUAL),
                    (TsTzRange("started_at", "ended_at"), RangeOperators.OVERLAPS),
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.devices} × {self.resource_name} of pod {self.pod_uid}"


class CoverageGap(models.Model):
    """A span in which nothing observed the cluster; shown, and nothing is invented for it (K9)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="coverage_gaps")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster"], condition=Q(ended_at=None), name="one_open_gap_per_cluster")
        ]

    def __str__(self) -> str:
        return f"gap from {self.started_at:%Y-%m-%d %H:%M:%S}Z"


class MeterAnomaly(models.Model):
    """A stamp or shape that the meter dropped, with why (K7); one row per pod and finding."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="meter_anomalies")
    pod_uid = models.CharField(max_length=64)
    finding = models.CharField(max_length=60)
    detail = models.TextField(blank=True)
    at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "pod_uid", "finding"], name="anomaly_once")]

    def __str__(self) -> str:
        return f"{self.finding} on pod {self.pod_uid}"
