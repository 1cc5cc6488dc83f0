"""Requests: ask, preview, decide, withdraw, revoke."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.approvals.api.serializers import (
    BulkDecisionInput,
    BulkOutcomesSerializer,
    DecisionInput,
    PreviewSerializer,
    RequestDraft,
    RequestInput,
    RequestQuery,
    RequestSerializer,
)
from portal.approvals.domain.previews import Preview
from portal.approvals.selectors.requests import (
    acts_on,
    inbox_list,
    request_get,
    request_list,
    request_outlook,
    request_preview,
)
from portal.approvals.services.decisions import request_decide, requests_decide
from portal.approvals.services.requests import request_revoke, request_submit, request_withdraw
from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.api.fields import ReasonSerializer
from portal.tenancy.api.idempotency import idempotent
from portal.tenancy.api.preconditions import etag, expected_version
from portal.tenancy.api.schema import IDEMPOTENCY_KEY, IF_MATCH_OPTIONAL
from portal.tenancy.selectors.permissions import permissions_by_project
from portal.tenancy.selectors.projects import project_get

_ACT = [IF_MATCH_OPTIONAL, IDEMPOTENCY_KEY]


class _RequestList(ListEndpoint):
    serializer_class = RequestSerializer

    def context_of(self, rows: list[Any]) -> dict[str, Any]:
        held = permissions_by_project(actor=self.actor)
        acts = {
            row.pk: acts_on(actor=self.actor, request=row, permissions=held.get(row.project_id, frozenset())) for row in rows
        }
        return {"acts": acts}


class RequestsView(_RequestList):
    """The requests of every project you may read."""

    orderings = ("-created_at", "created_at")

    def rows(self) -> Any:
        asked = self.query(RequestQuery)
        project = project_get(actor=self.actor, public_id=asked["project"]) if asked["project"] else None
        return request_list(actor=self.actor, project=project, state=asked["state"])

    @extend_schema(parameters=[RequestQuery])
    def get(self, request: Request) -> Response:
        return super().get(request)

    @extend_schema(request=RequestInput, responses={201: RequestSerializer}, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Ask. What can never be approved is refused at once; what must wait is for people to decide."""
        asked = self.body(RequestInput)
        project = project_get(actor=self.actor, public_id=asked.pop("project"))
        made = request_submit(actor=self.actor, project=project, **asked)
        return _answer(self, made.public_id, status=201)


class InboxView(_RequestList):
    """What waits for your decision, oldest first."""

    orderings = ("created_at", "-created_at")

    def rows(self) -> Any:
        return inbox_list(actor=self.actor)


class RequestPreviewView(Endpoint):
    @extend_schema(request=RequestDraft, responses=PreviewSerializer)
    def post(self, request: Request) -> Response:
        """What submitting this would mean now: fit, grant, free devices, cost. Writes nothing."""
        asked = self.body(RequestDraft)
        project = project_get(actor=self.actor, public_id=asked.pop("project"))
        return _preview(request_preview(actor=self.actor, project=project, **asked))


class RequestsDecideView(Endpoint):
    @extend_schema(request=BulkDecisionInput, responses=BulkOutcomesSerializer, parameters=[IDEMPOTENCY_KEY])
    @idempotent()
    def post(self, request: Request) -> Response:
        """Decide many, each by itself: the refusal of one leaves the others decided."""
        asked = self.body(BulkDecisionInput)
        outcomes = requests_decide(actor=self.actor, public_ids=asked.pop("requests"), **asked)
        return Response(BulkOutcomesSerializer({"results": outcomes}).data)


class RequestView(Endpoint):
    @extend_schema(responses=RequestSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        return _answer(self, public_id)


class RequestOutlookView(Endpoint):
    @extend_schema(responses=PreviewSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """The preview's checks for a submitted request, as things stand now."""
        found = request_get(actor=self.actor, public_id=public_id)
        return _preview(request_outlook(actor=self.actor, request=found))


class RequestDecideView(Endpoint):
    @extend_schema(request=DecisionInput, responses=RequestSerializer, parameters=_ACT)
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Approve or deny. The verdict it has already changes nothing; never your own request."""
        request_get(actor=self.actor, public_id=public_id)
        version = expected_version(request)
        request_decide(actor=self.actor, public_id=public_id, version=version, **self.body(DecisionInput))
        return _answer(self, public_id)


class RequestWithdrawView(Endpoint):
    @extend_schema(request=None, responses=RequestSerializer, parameters=_ACT)
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Take your own undecided request back."""
        request_get(actor=self.actor, public_id=public_id)
        request_withdraw(actor=self.actor, public_id=public_id, version=expected_version(request))
        return _answer(self, public_id)


class RequestRevokeView(Endpoint):
    @extend_schema(request=ReasonSerializer, responses=RequestSerializer, parameters=_ACT)
    @idempotent()
    def post(self, request: Request, public_id: str) -> Response:
        """Take an approval back, and remove what it made."""
        request_get(actor=self.actor, public_id=public_id)
        version = expected_version(request)
        request_revoke(actor=self.actor, public_id=public_id, version=version, **self.body(ReasonSerializer))
        return _answer(self, public_id)


def _answer(view: Endpoint, public_id: str, *, status: int = 200) -> Response:
    found = request_get(actor=view.actor, public_id=public_id)
    context = {"acts": {found.pk: acts_on(actor=view.actor, request=found)}}
    return Response(RequestSerializer(found, context=context).data, status=status, headers=etag(found.version))


def _preview(preview: Preview) -> Response:
    shown = {
        "checks": preview.checks,
        "devices": preview.devices,
        "facts": [{"label": label, "text": text} for label, text in preview.facts],
        "refused": bool(preview.refusals),
    }
    return Response(PreviewSerializer(shown).data)
