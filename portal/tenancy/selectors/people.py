"""People: who acts, and how they are shown to others."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.audit.domain.actors import Actor, ActorKind, Channel, Scope
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import ApiToken, User
from portal.tenancy.selectors.permissions import require_platform


def actor_for(user: User, channel: Channel, token: ApiToken | None = None, request_id: str = "") -> Actor:
    """The actor a signed-in ``user`` acts as; a token brings its public id and narrows the scopes to its own."""
    return Actor(
        kind=ActorKind.USER,
        id=user.public_id,
        channel=channel,
        user_pk=user.pk,
        token_id=token.public_id if token is not None else "",
        request_id=request_id,
        scopes=frozenset(Scope(scope) for scope in token.scopes) if token is not None else frozenset(Scope),
    )


def user_get(*, public_id: str) -> User:
    """The person behind a public id; NotFound for unknown and inactive ones."""
    user = User.objects.filter(public_id=public_id, is_active=True).first()
    if user is None:
        raise NotFound
    return user


def user_list(*, actor: Actor) -> QuerySet[User]:
    """Everybody, for those who manage identities; Forbidden for others."""
    require_platform(actor=actor, permission=Permission.ORGANIZATION_MANAGE)
    return User.objects.order_by("name", "pk")


def names_of(*, public_ids: list[str]) -> dict[str, str]:
    """Public id -> shown name, for audit rows and timelines that hold ids only; ids of loops are not in the answer."""
    return dict(User.objects.filter(public_id__in=set(public_ids)).values_list("public_id", "name"))
