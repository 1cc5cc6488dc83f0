"""The audit trail, for auditors and administrators of an organization."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.audit.domain.actors import ActorKind, Channel
from portal.tenancy.api.endpoint import ListEndpoint
from portal.tenancy.api.fields import PublicIdField
from portal.tenancy.selectors.audit import audit_list
from portal.tenancy.selectors.projects import project_get

_FREE = extend_schema_field({"type": "object", "additionalProperties": True})


@_FREE
class _Values(serializers.JSONField):
    """Any JSON object, or null."""


class AuditEventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor_kind = serializers.ChoiceField(choices=[kind.value for kind in ActorKind])
    actor_id = serializers.CharField()
    channel = serializers.ChoiceField(choices=[channel.value for channel in Channel])
    token_id = serializers.CharField()
    request_id = serializers.CharField(help_text="The same id as in the logs and on the cluster object.")
    action = serializers.CharField()
    object_kind = serializers.CharField()
    object_id = serializers.CharField()
    project_id = serializers.CharField()
    organization_id = serializers.CharField()
    before = _Values(allow_null=True)
    after = _Values(allow_null=True)
    reason = serializers.CharField()


class AuditQuery(serializers.Serializer[Any]):
    project = PublicIdField(required=False, default="", allow_blank=True)
    object_kind = serializers.CharField(max_length=40, required=False, default="", allow_blank=True)
    object_id = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)


class AuditView(ListEndpoint):
    """One row per object changed: who, through what, before and after."""

    serializer_class = AuditEventSerializer
    orderings = ("-id", "id")

    def rows(self) -> Any:
        asked = self.query(AuditQuery)
        project = project_get(actor=self.actor, public_id=asked.pop("project")) if asked["project"] else None
        asked.pop("project", None)
        return audit_list(actor=self.actor, project=project, **asked)

    @extend_schema(parameters=[AuditQuery])
    def get(self, request: Request) -> Response:
        return super().get(request)
