"""Projects and their members."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.fields import ReasonSerializer
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.preconditions import etag, expected_version
from portal.tenancy.api.schema import IDEMPOTENCY_KEY, IF_MATCH, IF_MATCH_OPTIONAL
from portal.tenancy.api.serializers import MemberInput, MemberSerializer, ProjectChange, ProjectInput, ProjectSerializer
from portal.tenancy.selectors.memberships import membership_list
from portal.tenancy.selectors.projects import organization_get, project_get, project_list
from portal.tenancy.services.memberships import membership_remove, membership_set
from portal.tenancy.services.organizations import project_close, project_create, project_rename


class ProjectsView(ListEndpoint):
    """The projects that you may read."""

    serializer_class = ProjectSerializer
    orderings = ("name", "-created_at")

    def rows(self) -> Any:
        return project_list(actor=self.actor)

    @extend_schema(request=ProjectInput, responses={201: ProjectSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Organization admins make projects."""
        asked = self.body(ProjectInput)
        organization = organization_get(actor=self.actor, public_id=asked.pop("organization"))
        return _answer(project_create(actor=self.actor, organization=organization, **asked), status=201)


class ProjectView(Endpoint):
    @extend_schema(responses=ProjectSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return _answer(project_get(actor=self.actor, public_id=public_id))

    @extend_schema(request=ProjectChange, responses=ProjectSerializer, parameters=[IF_MATCH])
    def patch(self, request: Request, public_id: str) -> Response:
        """Another name or zone; its namespace, keys and ledger stay."""
        project_get(actor=self.actor, public_id=public_id)
        version = expected_version(request, required=True)
        changed = project_rename(actor=self.actor, public_id=public_id, version=version, **self.body(ProjectChange))
        return _answer(changed)


class ProjectCloseView(Endpoint):
    @extend_schema(request=ReasonSerializer, responses=ProjectSerializer, parameters=[IF_MATCH_OPTIONAL, IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """End what the project has: requests, grants, deployments, keys. What it used stays on record."""
        project_get(actor=self.actor, public_id=public_id)
        version = expected_version(request)
        closed = project_close(actor=self.actor, public_id=public_id, version=version, **self.body(ReasonSerializer))
        return _answer(closed)


class MembersView(ListEndpoint):
    """Who is in the project, and as what."""

    serializer_class = MemberSerializer
    orderings = ("created_at", "-created_at")

    def rows(self) -> Any:
        return membership_list(actor=self.actor, project=project_get(actor=self.actor, public_id=self.kwargs["public_id"]))

    @extend_schema(request=MemberInput, responses={201: MemberSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Give somebody a role here, or another one."""
        project = project_get(actor=self.actor, public_id=public_id)
        made = membership_set(actor=self.actor, project=project, **self.body(MemberInput))
        return Response(MemberSerializer(made).data, status=201)


class MemberView(Endpoint):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, public_id: str, user_id: str) -> Response:
        """Take the manual membership away."""
        project = project_get(actor=self.actor, public_id=public_id)
        membership_remove(actor=self.actor, project=project, user_public_id=user_id)
        return Response(status=204)


def _answer(project: Any, *, status: int = 200) -> Response:
    return Response(ProjectSerializer(project).data, status=status, headers=etag(project.version))
