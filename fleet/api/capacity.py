"""GPU profiles with their compatibility matrix, and clusters: read by everybody, written by fleet operators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.serializers import (
    CellInput,
    ClusterInput,
    ClusterPatch,
    ClusterSerializer,
    ProfileInput,
    ProfilePatch,
    ProfileSerializer,
)
from fleet.selectors.profiles import cluster_get, cluster_list, profile_get, profile_list
from fleet.services.clusters import cluster_create, cluster_enable
from fleet.services.profiles import cell_set, profile_create, profile_update
from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.preconditions import etag, expected_version
from portal.tenancy.api.schema import IDEMPOTENCY_KEY, IF_MATCH


class ProfilesView(ListEndpoint):
    """The tested classes of capacity."""

    serializer_class = ProfileSerializer
    orderings = ("name", "-created_at")

    def rows(self) -> Any:
        return profile_list()

    @extend_schema(request=ProfileInput, responses={201: ProfileSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Fleet operators describe a class of capacity."""
        made = profile_create(actor=self.actor, **self.body(ProfileInput))
        return _profile(made.public_id, status=201)


class ProfileView(Endpoint):
    """By public id or name."""

    @extend_schema(responses=ProfileSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return _profile(public_id)

    @extend_schema(request=ProfilePatch, responses=ProfileSerializer, parameters=[IF_MATCH])
    def patch(self, request: Request, public_id: str) -> Response:
        """Change it and raise its version; revisions keep the one they were made with."""
        profile = profile_get(ref=public_id)
        version = expected_version(request, required=True)
        profile_update(actor=self.actor, public_id=profile.public_id, version=version, **self.body(ProfilePatch))
        return _profile(profile.public_id)


class ProfileCellsView(Endpoint):
    @extend_schema(request=CellInput, responses=ProfileSerializer)
    def put(self, request: Request, public_id: str) -> Response:
        """Set one cell of the matrix: backend, model format, and what proves it."""
        profile = profile_get(ref=public_id)
        cell_set(actor=self.actor, profile_public_id=profile.public_id, **self.body(CellInput))
        return _profile(profile.public_id)


class ClustersView(ListEndpoint):
    """The registered clusters, as last observed."""

    serializer_class = ClusterSerializer
    orderings = ("name",)

    def rows(self) -> Any:
        return cluster_list()

    @extend_schema(request=ClusterInput, responses={201: ClusterSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Fleet operators register a cluster; its kubeconfig is a file in the credentials folder, never sent here."""
        made = cluster_create(actor=self.actor, **self.body(ClusterInput))
        return Response(ClusterSerializer(made).data, status=201)


class ClusterView(Endpoint):
    @extend_schema(responses=ClusterSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return Response(ClusterSerializer(cluster_get(ref=public_id)).data)

    @extend_schema(request=ClusterPatch, responses=ClusterSerializer)
    def patch(self, request: Request, public_id: str) -> Response:
        """Offer it for new work, or stop; what runs there goes on being observed and metered."""
        cluster = cluster_get(ref=public_id)
        changed = cluster_enable(actor=self.actor, public_id=cluster.public_id, **self.body(ClusterPatch))
        return Response(ClusterSerializer(changed).data)


def _profile(ref: str, *, status: int = 200) -> Response:
    profile = profile_get(ref=ref)
    return Response(ProfileSerializer(profile).data, status=status, headers=etag(profile.version))
