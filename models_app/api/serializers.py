"""What the deployment endpoints take and give. Shape only: services decide."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from models_app.domain.phases import FactState, Phase
from portal.tenancy.api.fields import JsonObjectField, NamedSerializer, PublicIdField, Text

_PHASES = [phase.value for phase in Phase]
_REPLICAS_MAX = 2**31 - 1


class ProfileNameSerializer(NamedSerializer):
    title = serializers.CharField()


class DeploymentSerializer(serializers.Serializer[Any]):
    """``context["cards"]`` maps a deployment's primary key to its card."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField(help_text="What API callers say as the model.")
    project = NamedSerializer()
    cluster = NamedSerializer()
    profile = ProfileNameSerializer()
    engine = serializers.CharField()
    revision = serializers.IntegerField()
    replicas_min = serializers.IntegerField()
    replicas_max = serializers.IntegerField()
    devices_per_replica = serializers.IntegerField()
    ready = serializers.SerializerMethodField(help_text="Ready replicas as last seen; null before the first look.")
    wanted = serializers.SerializerMethodField(help_text="Replicas wanted now.")
    desired = serializers.ChoiceField(choices=["present", "absent"])
    phase = serializers.ChoiceField(choices=_PHASES, help_text="The state that leads; `facts` has all of them apart.")
    phase_reason = serializers.CharField()
    phase_message = serializers.CharField()
    phase_since = serializers.DateTimeField()
    generation = serializers.IntegerField()
    observed_generation = serializers.IntegerField()
    observed_at = serializers.DateTimeField(allow_null=True)
    request = serializers.CharField(source="approval_id", help_text='The request that made it; "" for none.')
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_ready(self, deployment: Any) -> int | None:
        ready: int | None = self.context["cards"][deployment.pk].ready
        return ready

    @extend_schema_field(serializers.IntegerField())
    def get_wanted(self, deployment: Any) -> int:
        wanted: int = self.context["cards"][deployment.pk].wanted
        return wanted


class FactSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in FactState])
    text = serializers.CharField()
    observed_at = serializers.DateTimeField(allow_null=True)


class ConditionSerializer(serializers.Serializer[Any]):
    type = serializers.CharField()
    status = serializers.ChoiceField(choices=["True", "False", "Unknown"])
    reason = serializers.CharField()
    message = serializers.CharField()
    since = serializers.CharField()


class ClusterEventSerializer(serializers.Serializer[Any]):
    at = serializers.CharField()
    type = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    about = serializers.CharField()
    count = serializers.IntegerField()


class RevisionSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    image = serializers.CharField()
    backend = serializers.CharField()
    artifact_source = serializers.CharField()
    artifact_revision = serializers.CharField()
    model_format = serializers.CharField()
    configuration = JsonObjectField()
    profile = ProfileNameSerializer()
    profile_version = serializers.IntegerField()
    created_by = NamedSerializer()
    created_at = serializers.DateTimeField()


class DeploymentPageSerializer(serializers.Serializer[Any]):
    """What one deployment shows beside its row."""

    runs = RevisionSerializer(source="revision", help_text="The revision that runs, or is on its way.")
    facts = FactSerializer(many=True, help_text="Every state apart, each with the age of its observation.")
    conditions = ConditionSerializer(many=True)
    events = ClusterEventSerializer(many=True, help_text="The cluster's own events about its objects.")
    held_devices = serializers.IntegerField()
    may_change = serializers.BooleanField()
    may_delete = serializers.BooleanField()


class DeploymentDetailSerializer(DeploymentPageSerializer, DeploymentSerializer):
    """Both in one object; for the description of the API."""


class PodSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    name = serializers.CharField()
    phase = serializers.CharField()
    ready = serializers.BooleanField()
    ended = serializers.BooleanField(help_text="It holds no device any more.")
    deleting = serializers.BooleanField()
    node = serializers.CharField()
    ip = serializers.CharField()
    port = serializers.IntegerField(allow_null=True)
    restarts = serializers.IntegerField()
    waiting = serializers.CharField()
    waiting_message = serializers.CharField()
    last_exit = serializers.CharField()
    generation = serializers.CharField(help_text="The generation stamped on it.")
    created_at = serializers.CharField()


class PodsSerializer(serializers.Serializer[Any]):
    observed_at = serializers.DateTimeField(allow_null=True)
    results = PodSerializer(many=True)


class ManifestSerializer(serializers.Serializer[Any]):
    api_version = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    uid = serializers.CharField()
    generation = serializers.IntegerField()
    applied_at = serializers.DateTimeField()
    gone_at = serializers.DateTimeField(allow_null=True)
    manifest = JsonObjectField(help_text="As applied last.")


class ManifestsSerializer(serializers.Serializer[Any]):
    results = ManifestSerializer(many=True)


class StepSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    phase = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    at = serializers.DateTimeField()


class RevisionsSerializer(serializers.Serializer[Any]):
    results = RevisionSerializer(many=True)


class DeploymentQuery(serializers.Serializer[Any]):
    project = PublicIdField(required=False, default="", allow_blank=True, help_text="Only those of this project.")
    phase = serializers.ChoiceField(choices=_PHASES, required=False, default=None)
    archived = serializers.BooleanField(required=False, default=False, help_text="Those that are gone instead.")


class ScaleInput(serializers.Serializer[Any]):
    replicas_min = serializers.IntegerField(min_value=0, max_value=_REPLICAS_MAX, help_text="0 scales to zero.")
    replicas_max = serializers.IntegerField(min_value=1, max_value=_REPLICAS_MAX, help_text="What quota is held for.")


class RevisionInput(serializers.Serializer[Any]):
    """Only what changes; the newest revision gives the rest."""

    image = Text(max_length=300, required=False, help_text="Pinned by digest.")
    source = Text(max_length=300, required=False)
    source_revision = Text(max_length=80, required=False)
    source_file = Text(max_length=300, required=False)
    cpu = Text(max_length=40, required=False)
    memory = Text(max_length=40, required=False)
    vram = Text(max_length=40, required=False)
    context_length = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=_REPLICAS_MAX)
    arguments = serializers.ListField(child=serializers.CharField(max_length=500), max_length=100, required=False)
