"""Who calls, their tokens, and the accounts that platform admins manage."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.fields import ReasonSerializer
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.schema import IDEMPOTENCY_KEY
from portal.tenancy.api.serializers import (
    MeSerializer,
    NewTokenSerializer,
    TokenInput,
    TokenSerializer,
    UserChange,
    UserInput,
    UserSerializer,
)
from portal.tenancy.selectors.people import user_list
from portal.tenancy.selectors.permissions import platform_permissions
from portal.tenancy.selectors.tokens import token_list
from portal.tenancy.services.people import user_create, user_deactivate, user_role_set
from portal.tenancy.services.tokens import token_create, token_revoke


class MeView(Endpoint):
    """Who you are here, and what this credential covers."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        actor = self.actor
        me = {
            "person": request.user,
            "platform_role": request.user.platform_role,
            "platform_permissions": sorted(permission.value for permission in platform_permissions(actor=actor)),
            "token": actor.token_id or None,
            "scopes": sorted(scope.value for scope in actor.scopes),
        }
        return Response(MeSerializer(me).data)


class TokensView(ListEndpoint):
    """Your own tokens, revoked and expired ones included."""

    serializer_class = TokenSerializer
    orderings = ("-created_at", "created_at")

    def rows(self) -> Any:
        return token_list(actor=self.actor)

    @extend_schema(request=TokenInput, responses={201: NewTokenSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent(shown_once=("secret",))
    def post(self, request: Request) -> Response:
        """A new token. Its secret is in this answer and nowhere else."""
        token, secret = token_create(actor=self.actor, **self.body(TokenInput))
        return Response({**TokenSerializer(token).data, "secret": secret}, status=201)


class TokenView(Endpoint):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, public_id: str) -> Response:
        """Revoke one of your tokens, at once."""
        token_revoke(actor=self.actor, public_id=public_id)
        return Response(status=204)


class UsersView(ListEndpoint):
    """Everybody, for platform admins."""

    serializer_class = UserSerializer
    orderings = ("name", "-created_at")

    def rows(self) -> Any:
        return user_list(actor=self.actor)

    @extend_schema(request=UserInput, responses={201: UserSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """A new account; without a password it signs in through an identity provider only."""
        return Response(UserSerializer(user_create(actor=self.actor, **self.body(UserInput))).data, status=201)


class UserView(Endpoint):
    @extend_schema(request=UserChange, responses=UserSerializer)
    def patch(self, request: Request, public_id: str) -> Response:
        """Another platform role, or none."""
        changed = user_role_set(actor=self.actor, public_id=public_id, **self.body(UserChange))
        return Response(UserSerializer(changed).data)


class UserDeactivateView(Endpoint):
    @extend_schema(request=ReasonSerializer, responses=UserSerializer, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Switch the account off: no sign-in and no token of it works from here on."""
        changed = user_deactivate(actor=self.actor, public_id=public_id, **self.body(ReasonSerializer))
        return Response(UserSerializer(changed).data)
