"""Organizations and their administrators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.schema import IDEMPOTENCY_KEY
from portal.tenancy.api.serializers import (
    AdministratorInput,
    AdministratorSerializer,
    OrganizationInput,
    OrganizationSerializer,
)
from portal.tenancy.selectors.memberships import organization_membership_list
from portal.tenancy.selectors.projects import organization_get, organization_list
from portal.tenancy.services.memberships import organization_membership_remove, organization_membership_set
from portal.tenancy.services.organizations import organization_create


class OrganizationsView(ListEndpoint):
    """Those that exist for you."""

    serializer_class = OrganizationSerializer
    orderings = ("name", "-created_at")

    def rows(self) -> Any:
        return organization_list(actor=self.actor)

    @extend_schema(request=OrganizationInput, responses={201: OrganizationSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Platform admins make organizations."""
        made = organization_create(actor=self.actor, **self.body(OrganizationInput))
        return Response(OrganizationSerializer(made).data, status=201)


class OrganizationView(Endpoint):
    @extend_schema(responses=OrganizationSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return Response(OrganizationSerializer(organization_get(actor=self.actor, public_id=public_id)).data)


class AdministratorsView(ListEndpoint):
    """Who administers the organization."""

    serializer_class = AdministratorSerializer
    orderings = ("-created_at", "created_at")

    def rows(self) -> Any:
        organization = organization_get(actor=self.actor, public_id=self.kwargs["public_id"])
        return organization_membership_list(actor=self.actor, organization=organization)

    @extend_schema(request=AdministratorInput, responses={201: AdministratorSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Platform admins name administrators."""
        organization = organization_get(actor=self.actor, public_id=public_id)
        made = organization_membership_set(actor=self.actor, organization=organization, **self.body(AdministratorInput))
        return Response(AdministratorSerializer(made).data, status=201)


class AdministratorView(Endpoint):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, public_id: str, user_id: str) -> Response:
        """Take the manual administrator role away."""
        organization = organization_get(actor=self.actor, public_id=public_id)
        organization_membership_remove(actor=self.actor, organization=organization, user_public_id=user_id)
        return Response(status=204)
