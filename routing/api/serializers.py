"""What the key endpoints take and give."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.tenancy.api.fields import NamedSerializer, Text
from routing.domain.keys import LIFETIME_DAYS_MAX


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id")
    project = NamedSerializer()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How the secret begins.")
    created_by = NamedSerializer()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewKeySerializer(KeySerializer):
    secret = serializers.CharField(allow_null=True, help_text="Shown once: null when the answer is a repeat.")
    base_url = serializers.CharField(help_text='Where OpenAI clients point to; "" when no gateway is set up.')


class KeyInput(serializers.Serializer[Any]):
    name = Text(max_length=80, allow_blank=False)
    expires_in_days = serializers.IntegerField(
        min_value=1,
        max_value=LIFETIME_DAYS_MAX,
        required=False,
        default=None,
        allow_null=True,
        help_text="Null: until revoked.",
    )
