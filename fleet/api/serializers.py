"""What the fleet endpoints take and give. Shape only: services decide."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from fleet.domain.grant_states import GrantState
from portal.tenancy.api.fields import JsonObjectField, NamedSerializer, PublicIdField, Text, TextMapField

_BIGINT_MAX = 2**63 - 1
SUPPORT = ("full", "experimental", "unsupported")


class CellSerializer(serializers.Serializer[Any]):
    backend = serializers.CharField()
    model_format = serializers.CharField()
    support = serializers.ChoiceField(choices=SUPPORT)
    image = serializers.CharField(help_text="Pinned by digest.")
    environment = serializers.DictField(child=serializers.CharField())
    reason = serializers.CharField()
    tested_at = serializers.DateTimeField(allow_null=True)
    tested_on_node = serializers.CharField()


class ProfileSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    title = serializers.CharField()
    vendor = serializers.CharField()
    architecture = serializers.CharField()
    product = serializers.CharField()
    resource_name = serializers.CharField()
    vram_bytes = serializers.IntegerField(help_text="Per device.")
    node_selector = serializers.DictField(child=serializers.CharField())
    tolerations = serializers.ListField(child=serializers.DictField())
    driver_range = serializers.CharField()
    version = serializers.IntegerField()
    enabled = serializers.BooleanField()
    cells = CellSerializer(many=True, source="cells.all", help_text="The compatibility matrix.")


class ProfileChange(serializers.Serializer[Any]):
    title = Text(max_length=120, allow_blank=False)
    vendor = Text(max_length=16, allow_blank=False)
    architecture = Text(max_length=24, allow_blank=False)
    product = Text(max_length=80, allow_blank=False)
    resource_name = serializers.CharField(max_length=80)
    vram_bytes = serializers.IntegerField(min_value=1, max_value=_BIGINT_MAX)
    node_selector = TextMapField(max_length=63)
    tolerations = serializers.ListField(child=JsonObjectField(), max_length=20, required=False)
    driver_range = Text(max_length=80, required=False)


class ProfileInput(ProfileChange):
    name = serializers.CharField(max_length=40)


class ProfilePatch(ProfileChange):
    enabled = serializers.BooleanField(required=False)

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


class CellInput(serializers.Serializer[Any]):
    backend = serializers.CharField(max_length=24)
    model_format = serializers.CharField(max_length=24)
    support = serializers.ChoiceField(choices=SUPPORT)
    image = Text(max_length=300, required=False, default="", help_text="registry/name@sha256:<64 hex digits>.")
    environment = TextMapField(max_length=1000, required=False)
    reason = Text(max_length=2000, required=False, default="")
    tested_on_node = Text(max_length=253, required=False, default="")


class ClusterSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    enabled = serializers.BooleanField()
    reachable = serializers.BooleanField(allow_null=True, help_text="Null until first seen.")
    last_seen_at = serializers.DateTimeField(allow_null=True)
    kubernetes_version = serializers.CharField()


class ClusterInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=40)
    credential = Text(
        max_length=120, required=False, default="", help_text="Name of a kubeconfig file; the name by default."
    )


class ClusterPatch(serializers.Serializer[Any]):
    enabled = serializers.BooleanField()
    reason = Text(max_length=2000, required=False, default="")


class ProfileRefSerializer(NamedSerializer):
    title = serializers.CharField()


class GrantSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    project = NamedSerializer()
    profile = ProfileRefSerializer()
    devices = serializers.IntegerField(help_text="At once.")
    borrowing_limit = serializers.IntegerField()
    gpu_hours_per_month = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(choices=[state.value for state in GrantState])
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True)
    request = serializers.CharField(source="approval_id", help_text='The request that made it; "" for none.')
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class GrantUseSerializer(serializers.Serializer[Any]):
    grant = GrantSerializer()
    held = serializers.IntegerField(help_text="Devices held, busy or not.")
    free = serializers.IntegerField(help_text="Devices that may still be held now.")
    over = serializers.IntegerField(help_text="Held beyond the grant: nothing is killed, nothing new is approved.")


class GrantUsesSerializer(serializers.Serializer[Any]):
    results = GrantUseSerializer(many=True)


class HoldSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="consumer_kind")
    id = serializers.CharField(source="consumer_id")
    devices = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class GrantQuery(serializers.Serializer[Any]):
    project = PublicIdField(required=False, default="", allow_blank=True, help_text="Only those of this project.")
    live = serializers.BooleanField(required=False, default=False, help_text="Only pending, active and expiring ones.")
