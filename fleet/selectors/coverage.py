"""How well a cluster was seen, and when not (K9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from fleet.models import Cluster, CoverageGap
from portal.kernel.gpu_time import instant_of
from portal.work.models import Heartbeat

SOURCES = ("observer", "meter")
"""Who looks at clusters: the watch, and the periodic full list."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A span in which nothing observed the cluster; ``ended_at`` None while it lasts."""

    cluster: str
    started_at: datetime
    ended_at: datetime | None
    reason: str


def covered_until(cluster: Cluster) -> datetime | None:
    """The last instant at which a list or a live watch proved what pods the cluster has; None before the first."""
    beats = Heartbeat.objects.filter(name__in=[f"{source}:{cluster.name}" for source in SOURCES])
    stamps = [instant_of(detail.get("covered_at")) for detail in beats.values_list("detail", flat=True)]
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def gaps(*, period_start: datetime, period_end: datetime, cluster: Cluster | None = None) -> list[Gap]:
    """Gaps that touch [period_start, period_end), latest first; of all clusters unless one is named."""
    rows = CoverageGap.objects.filter(Q(ended_at=None) | Q(ended_at__gt=period_start), started_at__lt=period_end)
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    return [
        Gap(cluster=row.cluster.name, started_at=row.started_at, ended_at=row.ended_at, reason=row.reason)
        for row in rows.select_related("cluster").order_by("-started_at", "-id")
    ]
