"""GPU time of a project: sums in whole microseconds (K5) over half-open periods of its zone (K6), and the rows behind them.

An interval that is still open counts to the last moment its cluster was seen, never beyond (D3, K9). ``project`` has been
authorized by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import connection
from django.db.models import F, Q, QuerySet

from fleet.models import GpuInterval, MeterAnomaly, ObservedPod
from portal.kernel import gpu_time
from portal.kernel.clock import now
from portal.tenancy.models import Project

Dimension = Literal["deployment", "day", "profile"]

UNOWNED = ""
"""Key of pods in the project's namespace that belong to nothing of ours."""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One key of a dimension: a consumer's public id ("" = nobody of ours), an ISO date, or a profile's name.

    ``slots_us``: devices × microseconds held. ``gpu_equiv_us``: the same in whole cards, None when the shape of any of it is
    unknown (K4). ``running_us``: device microseconds after the first container start. ``uncertain_us``: device microseconds
    after the last evidence, not counted in the others. ``open``: something of it is still held.
    """

    key: str
    slots_us: int
    gpu_equiv_us: int | None
    running_us: int
    open: bool
    uncertain_us: int
    kind: str = ""


def zone_of(project: Project) -> ZoneInfo:
    """The project's IANA zone; UTC when its name is unknown to this machine."""
    try:
        return ZoneInfo(project.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def month_bounds(project: Project, at: datetime) -> tuple[datetime, datetime]:
    """[start, end) in UTC of the month of ``at`` by the project's wall clocks."""
    return gpu_time.month_bounds(at, zone_of(project))


# Every part of an interval that falls into a window, the windows being days or the period itself. The sums are of bigint
# and numeric, never of floats; EXTRACT(EPOCH FROM interval) is numeric with microseconds.
_PARTS = """
WITH windows AS (
    SELECT * FROM unnest(%(keys)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS w (key, starts, ends)
), held AS (
    SELECT i.*, COALESCE(i.ended_at, GREATEST(i.started_at, LEAST(%(now)s, COALESCE(c.last_seen_at, %(now)s)))) AS until
    FROM fleet_gpuinterval i JOIN fleet_cluster c ON c.id = i.cluster_id
    WHERE i.project_id = %(project)s
), parts AS (
    SELECT h.*, w.key AS day, w.starts, w.ends,
        GREATEST(h.started_at, w.starts) AS part_from, LEAST(h.until, w.ends) AS part_to
    FROM held h JOIN windows w ON h.started_at < w.ends AND h.until >= w.starts
), counted AS (
    SELECT {key} AS key, {kind} AS kind, devices, gpu_equiv_ppm,
        GREATEST(0, (EXTRACT(EPOCH FROM part_to - part_from) * 1000000)::bigint) AS held_us,
        CASE WHEN running_at IS NULL THEN 0
            ELSE GREATEST(0, (EXTRACT(EPOCH FROM part_to - GREATEST(part_from, running_at)) * 1000000)::bigint)
        END AS run_us,
        ended_at IS NULL AND until < ends AS still_open,
        CASE WHEN ended_at >= starts AND ended_at < ends THEN uncertain_us ELSE 0 END AS doubt_us
    FROM parts
)
SELECT key, kind, SUM(held_us * devices)::bigint, SUM(held_us::numeric * devices * gpu_equiv_ppm),
    BOOL_OR(gpu_equiv_ppm IS NULL AND held_us > 0), SUM(run_us * devices)::bigint, BOOL_OR(still_open),
    SUM(doubt_us * devices)::bigint
FROM counted GROUP BY key, kind
HAVING SUM(held_us) > 0 OR BOOL_OR(still_open) OR SUM(doubt_us) > 0
ORDER BY key, kind
"""

_KEYS: dict[Dimension, tuple[str, str]] = {
    "deployment": ("consumer_id", "consumer_kind"),
    "day": ("day", "''"),
    "profile": ("CASE WHEN profile_name = '' THEN resource_name ELSE profile_name END", "''"),
}


def usage_by(*, project: Project, period_start: datetime, period_end: datetime, dimension: Dimension) -> list[UsageLine]:
    """GPU time in [period_start, period_end) by consumer, by day of the project's zone, or by GPU profile. One query.

    Lines are ordered by key; a key without any time in the period has no line.
    """
    if dimension == "day":
        windows = list(gpu_time.days_between(period_start, period_end, zone_of(project)))
    else:
        windows = [(date.min, period_start, period_end)]
    key, kind = _KEYS[dimension]
    with connection.cursor() as cursor:
        cursor.execute(
            _PARTS.format(key=key, kind=kind),
            {
                "keys": [day.isoformat() for day, _, _ in windows],
                "starts": [start for _, start, _ in windows],
                "ends": [end for _, _, end in windows],
                "now": now(),
                "project": project.public_id,
            },
        )
        return [
            UsageLine(
                key=row[0],
                kind=row[1],
                slots_us=row[2],
                gpu_equiv_us=None if row[4] else int((row[3] or 0) // 1_000_000),
                running_us=row[5],
                open=row[6],
                uncertain_us=row[7],
            )
            for row in cursor.fetchall()
        ]


def intervals(
    *,
    project: Project,
    period_start: datetime,
    period_end: datetime,
    consumer_id: str | None = None,
    profile_name: str | None = None,
) -> QuerySet[GpuInterval]:
    """The raw intervals that touch [period_start, period_end), of one consumer or profile line where named.

    Latest start first, with the id as tiebreak (C36).
    """
    touching = Q(ended_at=None) | Q(ended_at__gt=period_start) | Q(ended_at=F("started_at"), ended_at__gte=period_start)
    found = GpuInterval.objects.filter(touching, project_id=project.public_id, started_at__lt=period_end)
    if consumer_id is not None:
        found = found.filter(consumer_id=consumer_id)
    if profile_name is not None:
        found = found.filter(Q(profile_name=profile_name) | Q(profile_name="", resource_name=profile_name))
    return found.select_related("cluster").order_by("-started_at", "-id")


@dataclass(frozen=True, slots=True)
class IntervalPage:
    """``following`` is the (started_at, id) to pass as ``after`` for the next page, None at the end."""

    rows: list[GpuInterval]
    following: tuple[datetime, int] | None


def interval_page(
    *,
    project: Project,
    period_start: datetime,
    period_end: datetime,
    consumer_id: str | None = None,
    profile_name: str | None = None,
    after: tuple[datetime, int] | None = None,
    limit: int = 100,
) -> IntervalPage:
    """One page of ``intervals``; rows that arrive meanwhile repeat none."""
    found = intervals(
        project=project,
        period_start=period_start,
        period_end=period_end,
        consumer_id=consumer_id,
        profile_name=profile_name,
    )
    if after is not None:
        found = found.filter(Q(started_at__lt=after[0]) | Q(started_at=after[0], id__lt=after[1]))
    rows = list(found[: limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return IntervalPage(rows=rows, following=(rows[-1].started_at, rows[-1].pk) if more else None)


def anomalies(*, project: Project, period_start: datetime, period_end: datetime) -> list[MeterAnomaly]:
    """What the meter dropped on the project's pods in the period, latest first (K7)."""
    uids = ObservedPod.objects.filter(project_id=project.public_id).values("uid")
    return list(
        MeterAnomaly.objects.filter(pod_uid__in=uids, at__gte=period_start, at__lt=period_end)
        .select_related("cluster")
        .order_by("-at", "-id")[:200]
    )
