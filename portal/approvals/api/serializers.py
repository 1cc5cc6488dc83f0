"""What the request endpoints take and give. Shape only: kinds and services decide."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.approvals.domain.previews import CheckVerdict
from portal.approvals.domain.states import RequestState, Verdict
from portal.approvals.selectors.requests import RequestAct
from portal.tenancy.api.fields import JsonObjectField, NamedSerializer, PublicIdField, Text

BULK_MAX = 100
_ACTS = serializers.ListField(child=serializers.ChoiceField(choices=[act.value for act in RequestAct]))


class DecisionSerializer(serializers.Serializer[Any]):
    stage = serializers.IntegerField()
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    decider = NamedSerializer()
    reason = serializers.CharField()
    at = serializers.DateTimeField()


class RequestSerializer(serializers.Serializer[Any]):
    """``context["acts"]`` maps a request's primary key to what the caller may do with it."""

    id = serializers.CharField(source="public_id")
    kind = serializers.CharField()
    title = serializers.CharField()
    project = NamedSerializer()
    requester = NamedSerializer()
    payload = JsonObjectField()
    justification = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in RequestState])
    stage = serializers.IntegerField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    submitted_at = serializers.DateTimeField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    fulfilled_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.CharField()
    made_kind = serializers.CharField(help_text='What it made, such as "deployment"; "" until approved.')
    made_id = serializers.CharField(help_text="The public id of what it made.")
    decisions = DecisionSerializer(many=True, source="decisions.all")
    may = serializers.SerializerMethodField(help_text="What you may do with it now.")

    @extend_schema_field(_ACTS)
    def get_may(self, request: Any) -> list[str]:
        return sorted(act.value for act in self.context["acts"][request.pk])


class RequestQuery(serializers.Serializer[Any]):
    project = PublicIdField(required=False, default="", allow_blank=True, help_text="Only those of this project.")
    state = serializers.ChoiceField(choices=[state.value for state in RequestState], required=False, default=None)


class RequestDraft(serializers.Serializer[Any]):
    kind = serializers.CharField(max_length=40, help_text='"grant" or "deployment".')
    project = PublicIdField(help_text="Public id.")
    payload = JsonObjectField(help_text="The ask, in the shape of its kind; its wrong fields are named as they are.")


class RequestInput(RequestDraft):
    justification = Text(max_length=4000, required=False, default="")


class DecisionInput(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    reason = Text(max_length=2000, required=False, default="", help_text="A denial needs one.")


class BulkDecisionInput(DecisionInput):
    requests = serializers.ListField(child=PublicIdField(), min_length=1, max_length=BULK_MAX)


class RefusalSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    detail = serializers.CharField()


class BulkOutcomeSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    state = serializers.CharField(source="request.state", allow_null=True, default=None, help_text="Null when refused.")
    error = RefusalSerializer(allow_null=True)


class BulkOutcomesSerializer(serializers.Serializer[Any]):
    results = BulkOutcomeSerializer(many=True)


class PreviewCheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in CheckVerdict])
    text = serializers.CharField()
    field = serializers.CharField(help_text='The field of the payload it is about, "" for none in particular.')


class PreviewFactSerializer(serializers.Serializer[Any]):
    label = serializers.CharField()
    text = serializers.CharField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What approving it would mean, as things stand now."""

    checks = PreviewCheckSerializer(many=True)
    devices = serializers.IntegerField(allow_null=True, help_text="What approval would hold; null when not known.")
    facts = PreviewFactSerializer(many=True)
    refused = serializers.BooleanField(help_text="It can never be approved as it stands.")
