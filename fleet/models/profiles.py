from __future__ import annotations

from enum import StrEnum

from django.db import models

from portal.kernel.clock import now
from portal.kernel.ids import new_id


def profile_id() -> str:
    return new_id("gpu")


class Support(StrEnum):
    """How far a cell of the compatibility matrix is proven (contract §1)."""

    FULL = "full"
    EXPERIMENTAL = "experimental"
    UNSUPPORTED = "unsupported"


class GpuProfile(models.Model):
    """A tested class of capacity. ``version`` goes up at every change; a revision records the one it used."""

    public_id = models.CharField(max_length=40, unique=True, default=profile_id, editable=False)
    name = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=120)
    vendor = models.CharField(max_length=16)
    architecture = models.CharField(max_length=24)
    product = models.CharField(max_length=80)
    resource_name = models.CharField(max_length=80)
    vram_bytes = models.PositiveBigIntegerField()
    node_selector = models.JSONField(default=dict)
    tolerations = models.JSONField(default=list)
    driver_range = models.CharField(max_length=80, blank=True)
    version = models.PositiveIntegerField(default=1)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.title


class CompatibilityCell(models.Model):
    """One backend × model format on a profile: what image runs it, and what proves that it does."""

    profile = models.ForeignKey(GpuProfile, on_delete=models.CASCADE, related_name="cells")
    backend = models.CharField(max_length=24)
    model_format = models.CharField(max_length=24)
    support = models.CharField(max_length=12, choices=[(support.value, support.value) for support in Support])
    image = models.CharField(max_length=300, blank=True)
    environment = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    tested_by = models.CharField(max_length=80, blank=True)
    tested_on_node = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["profile", "backend", "model_format"], name="cell_once"),
            models.CheckConstraint(
                condition=models.Q(support__in=[support.value for support in Support]), name="cell_support_known"
            ),
            models.CheckConstraint(
                condition=models.Q(support="unsupported") | models.Q(image__contains="@sha256:"), name="cell_image_pinned"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.backend} × {self.model_format}: {self.support}"
