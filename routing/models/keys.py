from __future__ import annotations

from django.db import models

from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models import Project, TenantManager, User


def key_id() -> str:
    return new_id("key")


class ApiKey(models.Model):
    """A project's key for the gateway. Only the SHA-256 of the secret is kept; it is shown once, at making."""

    public_id = models.CharField(max_length=40, unique=True, default=key_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
