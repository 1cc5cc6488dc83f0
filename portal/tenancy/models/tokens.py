from __future__ import annotations

from django.db import models

from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.models.people import User


def token_id() -> str:
    return new_id("tok")


class ApiToken(models.Model):
    """A person's credential for the REST API. Only the SHA-256 of the secret is kept; the prefix finds the row."""

    public_id = models.CharField(max_length=40, unique=True, default=token_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
