"""Writes of how well a cluster is seen: reachable or not, covered until when, and the gaps in between (K9, D3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.domain.coverage import GAP_AFTER, UNSEEN_AFTER, gap_start
from fleet.models import Cluster, CoverageGap
from fleet.selectors.coverage import covered_until
from fleet.services.parts.writers import cluster_lock
from portal.work.models import Heartbeat


@transaction.atomic(durable=True)
def cluster_covered(
    *,
    cluster: Cluster,
    source: str,
    at: datetime,
    covered_at: datetime | None,
    detail: Mapping[str, Any] | None = None,
    longest: timedelta = GAP_AFTER,
) -> None:
    """The cluster answered ``source`` (``observer``, ``meter``) at ``at``; its pods were last proven at ``covered_at``.

    Closes the open gap, or records one that nobody noticed because every process was down. Writes the heartbeat
    ``<source>:<cluster name>``.
    """
    cluster_lock(cluster)
    last = covered_until(cluster)
    if covered_at is not None and (last is None or covered_at > last):
        open_gap = CoverageGap.objects.filter(cluster=cluster, ended_at=None, started_at__lt=covered_at)
        closed = open_gap.update(ended_at=covered_at)
        start = gap_start(covered_at=last, at=covered_at, longest=longest)
        if start is not None and not closed:
            CoverageGap.objects.create(
                cluster=cluster, started_at=start, ended_at=covered_at, reason="nothing observed the cluster"
            )
    else:
        # The cluster answers, and what pods it has is not proven all the same: its watch hangs, or is forbidden.
        _gap_open(cluster, last, at, longest, "the cluster answers, its pods are not seen")
    Cluster.objects.filter(pk=cluster.pk).update(reachable=True, last_error="", last_seen_at=at)
    Heartbeat.objects.update_or_create(
        name=f"{source}:{cluster.name}",
        defaults={"at": at, "detail": {**(detail or {}), "covered_at": _text(_latest(covered_at, last))}},
    )


@transaction.atomic(durable=True)
def cluster_lost(*, cluster: Cluster, source: str, at: datetime, error: str, longest: timedelta = GAP_AFTER) -> None:
    """``source`` could not see the cluster at ``at``. What is known stays; a long silence opens a gap (D3, K9)."""
    cluster_lock(cluster)
    seen_at = Cluster.objects.values_list("last_seen_at", flat=True).get(pk=cluster.pk)
    if seen_at is None or at - seen_at > UNSEEN_AFTER:
        Cluster.objects.filter(pk=cluster.pk).update(reachable=False, last_error=error[:1000])
    last = covered_until(cluster)
    _gap_open(cluster, last, at, longest, error)
    Heartbeat.objects.update_or_create(
        name=f"{source}:{cluster.name}",
        defaults={"at": at, "detail": {"error": error[:1000], "covered_at": _text(last)}},
    )


@transaction.atomic(durable=True)
def cluster_described(*, cluster: Cluster, kubernetes_version: str, installed_kinds: Sequence[str]) -> None:
    """What the cluster says it is; ``installed_kinds`` as ``apiVersion/Kind``."""
    Cluster.objects.filter(pk=cluster.pk).update(
        kubernetes_version=kubernetes_version[:40], installed_kinds=sorted(installed_kinds)
    )


def _gap_open(cluster: Cluster, last: datetime | None, at: datetime, longest: timedelta, reason: str) -> None:
    start = gap_start(covered_at=last, at=at, longest=longest)
    if start is not None and not CoverageGap.objects.filter(cluster=cluster, ended_at=None).exists():
        CoverageGap.objects.create(cluster=cluster, started_at=start, reason=reason[:200])


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(one, other) if one and other else one or other


def _text(at: datetime | None) -> str:
    return at.isoformat() if at is not None else ""
