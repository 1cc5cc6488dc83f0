"""Personal tokens of the REST API: made, used, revoked. The secret leaves once and is never stored or audited."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from portal.audit.domain.actors import Actor, Scope
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import Forbidden, InvalidInput, NotFound
from portal.tenancy.domain.secrets import new_token_secret
from portal.tenancy.models import ApiToken, User

EXPIRES_MAX_DAYS = 365
_LAST_USED_STEP = timedelta(minutes=1)


def token_create(*, actor: Actor, name: str, scopes: Iterable[Scope | str], expires_in_days: int) -> tuple[ApiToken, str]:
    """A new token of the actor and its secret (``slp_…``), which is shown only now.

    ``write`` brings ``read`` with it. A token makes no token that may do more, or lives longer, than itself.
    """
    if actor.user_pk is None:
        raise Forbidden("Only a person has tokens.")
    name = " ".join(name.split())
    wanted = _checked(name, scopes, expires_in_days)
    if Scope.WRITE not in actor.scopes:
        raise Forbidden("This token has no write scope and makes no other tokens: use the browser, or a token with it.")
    at = now()
    expires_at = at + timedelta(days=expires_in_days)
    with transaction.atomic(durable=True):
        user = User.objects.select_for_update(of=("self",), no_key=True).filter(pk=actor.user_pk, is_active=True).first()
        if user is None:
            raise NotFound
        if actor.token_id:
            parent = ApiToken.objects.filter(public_id=actor.token_id, user=user).first()
            expires_at = min(expires_at, parent.expires_at) if parent is not None else at
        fresh = new_token_secret()
        token = ApiToken.objects.create(
            user=user,
            name=name,
            prefix=fresh.prefix,
            secret_sha256=fresh.sha256,
            scopes=sorted(scope.value for scope in wanted),
            created_at=at,
            expires_at=expires_at,
        )
        event_record(
            actor=actor, action="token.create", object_kind="token", object_id=token.public_id, after=_snapshot(token)
        )
    return token, fresh.secret


def token_revoke(*, actor: Actor, public_id: str) -> ApiToken:
    """Revoke one of the actor's own tokens, at once on every process. Safe to repeat; a read-only token may end itself."""
    with transaction.atomic(durable=True):
        token = (
            ApiToken.objects.select_for_update(of=("self",), no_key=True)
            .filter(public_id=public_id, user_id=actor.user_pk)
            .first()
            if actor.user_pk is not None
            else None
        )
        if token is None:
            raise NotFound
        if Scope.WRITE not in actor.scopes and token.public_id != actor.token_id:
            raise Forbidden("This token has no write scope: it may revoke itself only.")
        if token.revoked_at is not None:
            return token
        before = _snapshot(token)
        token.revoked_at = now()
        token.save(update_fields=["revoked_at"])
        event_record(
            actor=actor,
            action="token.revoke",
            object_kind="token",
            object_id=token.public_id,
            before=before,
            after=_snapshot(token),
        )
    return token


def token_used(token: ApiToken) -> None:
    """Keep the time of last use, to the minute; an observation, so it has no audit row."""
    at = now()
    long_ago = Q(last_used_at=None) | Q(last_used_at__lt=at - _LAST_USED_STEP)
    ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=at)


def _checked(name: str, scopes: Iterable[Scope | str], expires_in_days: int) -> frozenset[Scope]:
    problems: dict[str, list[str]] = {}
    if not name or len(name) > 80:
        problems["name"] = ["1 to 80 characters."]
    if not 1 <= expires_in_days <= EXPIRES_MAX_DAYS:
        problems["expires_in_days"] = [f"1 to {EXPIRES_MAX_DAYS} days."]
    wanted: frozenset[Scope] = frozenset()
    try:
        wanted = frozenset(Scope(scope) for scope in scopes)
    except ValueError:
        problems["scopes"] = ["Each one of: read, write."]
    else:
        if not wanted:
            problems["scopes"] = ["At least one of: read, write."]
    if problems:
        raise InvalidInput("The token is not valid.", fields=problems)
    return wanted | {Scope.READ}


def _snapshot(token: ApiToken) -> dict[str, object]:
    return {
        "name": token.name,
        "scopes": token.scopes,
        "expires_at": token.expires_at.isoformat(),
        "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
    }
