"""Keys of a project for the gateway: made and revoked. The secret leaves once and is never stored or audited."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import Forbidden, InvalidInput, NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project, unscoped
from portal.tenancy.selectors.permissions import permissions_of, projects_where, require
from routing.domain.keys import LIFETIME_DAYS_MAX, new_secret
from routing.models import ApiKey

_NAME_MAX = 80


def key_create(*, actor: Actor, project: Project, name: str, expires_in_days: int | None = None) -> tuple[ApiKey, str]:
    """A new key of ``project`` and its secret (``slk_…``), which is shown only now.

    ``expires_in_days`` None: it is valid until it is revoked. Raises NotFound, Forbidden, InvalidInput, and Conflict
    when the project is closed. Every gateway process knows the key within 5 s.
    """
    require(actor=actor, permission=Permission.KEY_MANAGE_OWN, project=project)
    if actor.user_pk is None:
        raise Forbidden("Only a person makes keys.")
    name = " ".join(name.split())
    _check(name, expires_in_days)
    fresh = new_secret()
    at = now()
    with transaction.atomic(durable=True):
        key = ApiKey.objects.create(
            project=project,
            name=name,
            prefix=fresh.prefix,
            secret_sha256=fresh.sha256,
            created_by_id=actor.user_pk,
            created_at=at,
            expires_at=at + timedelta(days=expires_in_days) if expires_in_days is not None else None,
        )
        event_record(
            actor=actor,
            action="key.create",
            object_kind="api_key",
            object_id=key.public_id,
            project_id=project.public_id,
            after=_snapshot(key),
        )
    return key, fresh.secret


def key_revoke(*, actor: Actor, public_id: str, reason: str = "") -> ApiKey:
    """End a key for good: one's own, or any of the project for its leads. Safe to repeat; also in a closed project.

    Every gateway process refuses the key within 5 s (G4); streams in flight may finish.
    """
    with transaction.atomic(durable=True):
        with unscoped("the key's own project decides, right below"):
            key: ApiKey | None = (
                ApiKey.objects.select_for_update(of=("self",))
                .select_related("project")
                .filter(public_id=public_id, project__in=projects_where(actor=actor, permission=Permission.PROJECT_READ))
                .first()
            )
        if key is None:
            raise NotFound
        own = actor.user_pk is not None and key.created_by_id == actor.user_pk
        if not (own and Permission.KEY_REVOKE_OWN in permissions_of(actor=actor, project=key.project)):
            require(actor=actor, permission=Permission.KEY_MANAGE, project=key.project)
        if key.revoked_at is not None:
            return key
        before = _snapshot(key)
        key.revoked_at = now()
        key.save(update_fields=["revoked_at"])
        event_record(
            actor=actor,
            action="key.revoke",
            object_kind="api_key",
            object_id=key.public_id,
            project_id=key.project.public_id,
            before=before,
            after=_snapshot(key),
            reason=reason,
        )
    return key


def _check(name: str, expires_in_days: int | None) -> None:
    problems: dict[str, list[str]] = {}
    if not name or len(name) > _NAME_MAX:
        problems["name"] = [f"1 to {_NAME_MAX} characters."]
    if expires_in_days is not None and not 1 <= expires_in_days <= LIFETIME_DAYS_MAX:
        problems["expires_in_days"] = [f"1 to {LIFETIME_DAYS_MAX} days, or leave it empty for a key that does not expire."]
    if problems:
        raise InvalidInput("The key is not valid.", fields=problems)


def _snapshot(key: ApiKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "prefix": key.prefix,
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
