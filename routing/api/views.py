"""A project's keys for the gateway."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.schema import IDEMPOTENCY_KEY
from portal.tenancy.selectors.projects import project_get
from routing.api.serializers import KeyInput, KeySerializer, NewKeySerializer
from routing.selectors.keys import key_get, key_list
from routing.services.keys import key_create, key_revoke


class KeysView(ListEndpoint):
    """The project's keys, ended ones included; never their secrets."""

    serializer_class = KeySerializer
    orderings = ("-created_at", "created_at")

    def rows(self) -> Any:
        return key_list(actor=self.actor, project=project_get(actor=self.actor, public_id=self.kwargs["public_id"]))

    @extend_schema(request=KeyInput, responses={201: NewKeySerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent(shown_once=("secret",))
    def post(self, request: Request, public_id: str) -> Response:
        """A new key. Its secret is in this answer and nowhere else; every gateway process knows it within 5 s."""
        project = project_get(actor=self.actor, public_id=public_id)
        key, secret = key_create(actor=self.actor, project=project, **self.body(KeyInput))
        base_url = f"{settings.GATEWAY_PUBLIC_URL}/v1" if settings.GATEWAY_PUBLIC_URL else ""
        return Response({**KeySerializer(key).data, "secret": secret, "base_url": base_url}, status=201)


class KeyView(Endpoint):
    @extend_schema(responses=KeySerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return Response(KeySerializer(key_get(actor=self.actor, public_id=public_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, public_id: str) -> Response:
        """Revoke it: refused by every gateway process within 5 s; streams in flight may finish."""
        key_get(actor=self.actor, public_id=public_id)
        key_revoke(actor=self.actor, public_id=public_id)
        return Response(status=204)
