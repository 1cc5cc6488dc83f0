"""GPU time of a project: sums for a period, and the raw intervals behind each of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.usage_serializers import IntervalQuery, IntervalSerializer, UsageQuery, UsageSerializer
from fleet.selectors.coverage import gaps
from fleet.selectors.usage import UsageLine, anomalies, intervals, month_bounds, usage_by
from portal.kernel.clock import now
from portal.kernel.gpu_time import hours
from portal.tenancy.api.endpoint import Endpoint, ListEndpoint
from portal.tenancy.selectors.projects import project_get

PERIOD_MAX = timedelta(days=400)
_MONTH = re.compile(r"(\d{4})-(\d{2})")


class UsageView(Endpoint):
    @extend_schema(parameters=[UsageQuery], responses=UsageSerializer)
    def get(self, request: Request, public_id: str) -> Response:
        """Hours by deployment, day or profile. Hours are rounded for showing; microseconds are exact, and totals come from
        them. What nothing observed is listed apart as gaps: nothing is invented for it."""
        project = project_get(actor=self.actor, public_id=public_id)
        asked = self.query(UsageQuery)
        start, end = period_of(project, asked)
        lines = usage_by(project=project, period_start=start, period_end=end, dimension=asked["by"])
        shown = {
            "period_start": start,
            "period_end": end,
            "time_zone": project.time_zone,
            "by": asked["by"],
            "lines": [_line(line) for line in lines],
            "total": _line(_total(lines)),
            "gaps": gaps(period_start=start, period_end=end),
            "anomalies": anomalies(project=project, period_start=start, period_end=end),
        }
        return Response(UsageSerializer(shown).data)


class IntervalsView(ListEndpoint):
    """Every pod's hold on its devices that touches the period: what the sums are made of."""

    serializer_class = IntervalSerializer
    orderings = ("-started_at", "started_at")

    def rows(self) -> Any:
        project = project_get(actor=self.actor, public_id=self.kwargs["public_id"])
        asked = self.query(IntervalQuery)
        start, end = period_of(project, asked)
        return intervals(
            project=project,
            period_start=start,
            period_end=end,
            consumer_id=asked["deployment"] or None,
            profile_name=asked["profile"] or None,
        )

    @extend_schema(parameters=[IntervalQuery])
    def get(self, request: Request, public_id: str) -> Response:
        return super().get(request)


def period_of(project: Any, asked: dict[str, Any]) -> tuple[datetime, datetime]:
    """[start, end) of a period query: ``start`` and ``end``, or ``month``, or the current month of the project's zone."""
    start, end, month = asked["start"], asked["end"], asked["month"]
    if (start is None) != (end is None) or (start is not None and month):
        raise serializers.ValidationError({"start": "Give start and end together, or month, or nothing for this month."})
    if start is None:
        return month_bounds(project, _middle_of(month) if month else now())
    if not start < end <= start + PERIOD_MAX:
        raise serializers.ValidationError({"end": f"After start, and at most {PERIOD_MAX.days} days after it."})
    return start.astimezone(UTC), end.astimezone(UTC)


def _middle_of(month: str) -> datetime:
    match = _MONTH.fullmatch(month)
    if match is None or not 2000 <= int(match[1]) <= 2200 or not 1 <= int(match[2]) <= 12:
        raise serializers.ValidationError({"month": "A month such as 2026-11."})
    return datetime(int(match[1]), int(match[2]), 15, tzinfo=UTC)


def _total(lines: list[UsageLine]) -> UsageLine:
    equivalents = [line.gpu_equiv_us for line in lines]
    return UsageLine(
        key="",
        slots_us=sum(line.slots_us for line in lines),
        gpu_equiv_us=None if None in equivalents else sum(value for value in equivalents if value is not None),
        running_us=sum(line.running_us for line in lines),
        open=any(line.open for line in lines),
        uncertain_us=sum(line.uncertain_us for line in lines),
    )


def _line(line: UsageLine) -> dict[str, Any]:
    return {
        "key": line.key,
        "kind": line.kind,
        "slot_hours": hours(line.slots_us),
        "slot_us": line.slots_us,
        "gpu_equiv_hours": None if line.gpu_equiv_us is None else hours(line.gpu_equiv_us),
        "gpu_equiv_us": line.gpu_equiv_us,
        "running_hours": hours(line.running_us),
        "running_us": line.running_us,
        "uncertain_us": line.uncertain_us,
        "open": line.open,
    }
