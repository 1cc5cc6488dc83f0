"""Grants and who holds devices of them. They are asked for and revoked through requests."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.serializers import GrantQuery, GrantSerializer, GrantUsesSerializer, HoldSerializer
from fleet.selectors.grants import grant_get, grant_list, grants_with_use, holds_of
from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.preconditions import etag
from portal.tenancy.selectors.projects import project_get


class GrantsView(ListEndpoint):
    """The grants of every project you may read, ended ones included."""

    serializer_class = GrantSerializer
    orderings = ("-created_at", "created_at")

    def rows(self) -> Any:
        asked = self.query(GrantQuery)
        project = project_get(actor=self.actor, public_id=asked["project"]) if asked["project"] else None
        return grant_list(actor=self.actor, project=project, live_only=asked["live"])

    @extend_schema(parameters=[GrantQuery])
    def get(self, request: Request) -> Response:
        return super().get(request)


class GrantView(Endpoint):
    @extend_schema(responses=GrantSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        grant = grant_get(actor=self.actor, public_id=public_id)
        return Response(GrantSerializer(grant).data, headers=etag(grant.version))


class GrantHoldsView(ListEndpoint):
    """Who holds devices of the grant now."""

    serializer_class = HoldSerializer
    orderings = ("created_at", "-created_at", "-devices")

    def rows(self) -> Any:
        return holds_of(actor=self.actor, grant=grant_get(actor=self.actor, public_id=self.kwargs["public_id"]))


class ProjectGrantsView(Endpoint):
    @extend_schema(responses=GrantUsesSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """The project's live grants, with what is held and free of each."""
        project = project_get(actor=self.actor, public_id=public_id)
        return Response(GrantUsesSerializer({"results": grants_with_use(project=project)}).data)
