"""Tokens of the REST API: whose is this secret, and which tokens has a person."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.tenancy.domain.secrets import same_secret, token_prefix
from portal.tenancy.models import ApiToken


def token_authenticate(secret: str) -> ApiToken | None:
    """The token (with its ``user``) that ``secret`` belongs to; None for one that is no good (any more).

    The caller tells ``services.tokens.token_used`` of it, which keeps the time of last use.
    """
    prefix = token_prefix(secret)
    if not prefix:
        return None
    token = ApiToken.objects.select_related("user").filter(prefix=prefix).first()
    if token is None or not same_secret(secret, token.secret_sha256):
        return None
    if token.revoked_at is not None or token.expires_at <= now() or not token.user.is_active:
        return None
    return token


def token_list(*, actor: Actor) -> QuerySet[ApiToken]:
    """The actor's own tokens, newest first, revoked and expired ones included."""
    return ApiToken.objects.filter(user_id=actor.user_pk or 0).order_by("-created_at", "-pk")
