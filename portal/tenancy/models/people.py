from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from portal.kernel.clock import now
from portal.kernel.ids import new_id
from portal.tenancy.domain.roles import PlatformRole


def user_id() -> str:
    return new_id("usr")


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)

    def create_user(self, *, email: str, password: str | None = None, **fields: Any) -> User:
        """A person; without ``password`` no local sign-in works."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person, or a service account of automation."""

    public_id = models.CharField(max_length=40, unique=True, default=user_id, editable=False)
    email = models.EmailField()
    name = models.CharField(max_length=120)
    platform_role = models.CharField(
        max_length=16,
        blank=True,
        default=PlatformRole.NONE.value,
        choices=[(role.value, role.value) for role in PlatformRole],
    )
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=now)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("email"), name="user_email_unique"),
            models.CheckConstraint(
                condition=models.Q(platform_role__in=[role.value for role in PlatformRole]), name="user_platform_role_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.email
