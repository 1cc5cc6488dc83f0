"""What the usage endpoints take and give. Hours are texts with 4 decimals, microseconds are exact whole numbers (K5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from portal.tenancy.api.fields import NamedSerializer, PublicIdField

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def _within_centuries(value: datetime) -> None:
    if not _EARLIEST <= value <= _LATEST:
        raise serializers.ValidationError("An instant between the years 2000 and 2200.")


class _Instant(serializers.DateTimeField):
    """An instant of this and the next century, so that no zone's arithmetic leaves the calendar."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            found: datetime = super().to_internal_value(value)
            _within_centuries(found)
        except OverflowError as error:
            raise serializers.ValidationError("An instant between the years 2000 and 2200.") from error
        return found


class PeriodQuery(serializers.Serializer[Any]):
    start = _Instant(required=False, default=None, allow_null=True, help_text="Inclusive; with `end`.")
    end = _Instant(required=False, default=None, allow_null=True, help_text="Exclusive, at most 400 days after `start`.")
    month = serializers.CharField(
        max_length=7,
        required=False,
        default="",
        allow_blank=True,
        help_text="Such as 2026-11, by the project's clocks; the current month by default.",
    )


class UsageQuery(PeriodQuery):
    by = serializers.ChoiceField(choices=["deployment", "day", "profile"], required=False, default="deployment")


class IntervalQuery(PeriodQuery):
    deployment = PublicIdField(required=False, default="", allow_blank=True, help_text="Only those of this consumer.")
    profile = serializers.CharField(
        max_length=80, required=False, default="", allow_blank=True, help_text="Only this profile."
    )


class UsageLineSerializer(serializers.Serializer[Any]):
    key = serializers.CharField(help_text='A public id, a date or a profile name; "" is what belongs to nothing of ours.')
    kind = serializers.CharField(help_text="What the key is the id of, when it is one.")
    slot_hours = serializers.DecimalField(max_digits=30, decimal_places=4)
    slot_us = serializers.IntegerField(help_text="Device microseconds held, exact.")
    gpu_equiv_hours = serializers.DecimalField(max_digits=30, decimal_places=4, allow_null=True, help_text="Null: unknown.")
    gpu_equiv_us = serializers.IntegerField(allow_null=True, help_text="In whole cards; null: a shape is unknown.")
    running_hours = serializers.DecimalField(max_digits=30, decimal_places=4)
    running_us = serializers.IntegerField(help_text="Of that, after the first container start; never what is billed.")
    uncertain_us = serializers.IntegerField(help_text="After the last evidence; in none of the other numbers.")
    open = serializers.BooleanField(help_text="Something of it is still held.")


class GapSerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()


class AnomalySerializer(serializers.Serializer[Any]):
    cluster = serializers.CharField(source="cluster.name")
    pod_uid = serializers.CharField()
    finding = serializers.CharField()
    detail = serializers.CharField()
    at = serializers.DateTimeField()


class UsageSerializer(serializers.Serializer[Any]):
    period_start = serializers.DateTimeField()
    period_end = serializers.DateTimeField(help_text="Exclusive.")
    time_zone = serializers.CharField()
    by = serializers.ChoiceField(choices=["deployment", "day", "profile"])
    lines = UsageLineSerializer(many=True)
    total = UsageLineSerializer()
    gaps = GapSerializer(many=True, help_text="Spans in which nothing observed a cluster.")
    anomalies = AnomalySerializer(many=True, help_text="What the meter dropped, and why.")


class IntervalSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    cluster = NamedSerializer()
    namespace = serializers.CharField()
    pod_name = serializers.CharField()
    pod_uid = serializers.CharField()
    node_name = serializers.CharField()
    kind = serializers.CharField(source="consumer_kind")
    deployment = serializers.CharField(source="consumer_id", help_text='Public id of the consumer; "" for nothing of ours.')
    profile = serializers.CharField(source="profile_name")
    resource_name = serializers.CharField()
    devices = serializers.IntegerField()
    gpu_equiv_ppm = serializers.IntegerField(allow_null=True, help_text="Whole cards of one device, in millionths.")
    started_at = serializers.DateTimeField()
    start_basis = serializers.CharField()
    running_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null while it is held.")
    end_basis = serializers.CharField()
    end_reason = serializers.CharField()
    uncertain_us = serializers.IntegerField()
