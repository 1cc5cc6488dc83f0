"""Deployments: what is wanted of them is changed here, and the loop makes it so. Making one is a request."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from models_app.api.serializers import (
    DeploymentDetailSerializer,
    DeploymentPageSerializer,
    DeploymentQuery,
    DeploymentSerializer,
    ManifestsSerializer,
    PodsSerializer,
    RevisionInput,
    RevisionSerializer,
    RevisionsSerializer,
    ScaleInput,
    StepSerializer,
)
from models_app.selectors.deployments import (
    deployment_card,
    deployment_get,
    deployment_list,
    deployment_manifests,
    deployment_page,
    deployment_timeline,
)
from models_app.services.deployments import deployment_delete, deployment_scale
from models_app.services.revisions import revision_create
from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.preconditions import etag, expected_version
from portal.tenancy.api.schema import IDEMPOTENCY_KEY, IF_MATCH, IF_MATCH_OPTIONAL
from portal.tenancy.selectors.projects import project_get


class DeploymentsView(ListEndpoint):
    """The standing deployments of every project you may read."""

    serializer_class = DeploymentSerializer
    orderings = ("-created_at", "created_at", "name", "-name")

    def rows(self) -> Any:
        asked = self.query(DeploymentQuery)
        project = project_get(actor=self.actor, public_id=asked.pop("project")) if asked["project"] else None
        asked.pop("project", None)
        return deployment_list(actor=self.actor, project=project, **asked)

    def context_of(self, rows: list[Any]) -> dict[str, Any]:
        return _cards(*rows)

    @extend_schema(parameters=[DeploymentQuery])
    def get(self, request: Request) -> Response:
        return super().get(request)


class DeploymentView(Endpoint):
    @extend_schema(responses=DeploymentDetailSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """Every state apart, conditions, and the cluster's events. Pods, objects and the timeline have addresses below."""
        page = deployment_page(actor=self.actor, public_id=public_id)
        row = DeploymentSerializer(page.deployment, context=_cards(page.deployment)).data
        return Response({**row, **DeploymentPageSerializer(page).data}, headers=etag(page.deployment.version))

    @extend_schema(request=ScaleInput, responses=DeploymentSerializer, parameters=[IF_MATCH])
    def patch(self, request: Request, public_id: str) -> Response:
        """Set the replica range. Growth is held against the grant first, or refused and nothing changes."""
        deployment_get(actor=self.actor, public_id=public_id)
        version = expected_version(request, required=True)
        deployment_scale(actor=self.actor, public_id=public_id, version=version, **self.body(ScaleInput))
        return _answer(self, public_id)

    @extend_schema(responses={202: DeploymentSerializer}, parameters=[IF_MATCH_OPTIONAL])
    def delete(self, request: Request, public_id: str) -> Response:
        """Stop wanting it: its objects go, and its quota once its last pod is proven gone. Repeating it is harmless."""
        deployment_get(actor=self.actor, public_id=public_id)
        deployment_delete(actor=self.actor, public_id=public_id, version=expected_version(request))
        return _answer(self, public_id, status=202)


class DeploymentPodsView(Endpoint):
    @extend_schema(responses=PodsSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """Its pods as last seen."""
        page = deployment_page(actor=self.actor, public_id=public_id)
        return Response(PodsSerializer({"observed_at": page.observed_at, "results": page.pods}).data)


class DeploymentManifestView(Endpoint):
    @extend_schema(responses=ManifestsSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """Its objects as applied last, with their stamps."""
        deployment = deployment_get(actor=self.actor, public_id=public_id)
        return Response(ManifestsSerializer({"results": deployment_manifests(deployment=deployment)}).data)


class DeploymentTimelineView(ListEndpoint):
    """The steps of its life."""

    serializer_class = StepSerializer
    orderings = ("-at", "at")

    def rows(self) -> Any:
        return deployment_timeline(actor=self.actor, public_id=self.kwargs["public_id"])


class DeploymentRevisionsView(Endpoint):
    @extend_schema(responses=RevisionsSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """Every combination of image, artifact, configuration and profile it had, newest first."""
        page = deployment_page(actor=self.actor, public_id=public_id)
        return Response(RevisionsSerializer({"results": page.revisions}).data)

    @extend_schema(
        request=RevisionInput, responses={201: RevisionSerializer}, parameters=[IF_MATCH_OPTIONAL, IDEMPOTENCY_KEY]
    )
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """The next revision; it takes over without surge, so that no quota grows."""
        deployment_get(actor=self.actor, public_id=public_id)
        version = expected_version(request)
        made = revision_create(actor=self.actor, public_id=public_id, changes=self.body(RevisionInput), version=version)
        return Response(RevisionSerializer(made).data, status=201)


def _answer(view: Endpoint, public_id: str, *, status: int = 200) -> Response:
    found = deployment_get(actor=view.actor, public_id=public_id)
    shown = DeploymentSerializer(found, context=_cards(found))
    return Response(shown.data, status=status, headers=etag(found.version))


def _cards(*deployments: Any) -> dict[str, Any]:
    return {"cards": {deployment.pk: deployment_card(deployment) for deployment in deployments}}
