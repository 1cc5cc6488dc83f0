"""Pods as last observed, by the row that owns them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from fleet.domain.pods import PodFacts, Standing, standing
from fleet.models import ObservedPod


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod for a page; ``gone_at`` None while it may still be there. ``devices``: resource -> count."""

    uid: str
    cluster: str
    namespace: str
    name: str
    node_name: str
    standing: Standing
    ready: bool
    devices: dict[str, int]
    generation_stamp: str
    pod_ip: str
    port: int | None
    created_at: datetime | None
    running_at: datetime | None
    observed_at: datetime
    gone_at: datetime | None
    holds_devices: bool


def pods_of(*, kind: str, id: str, with_gone: bool = False) -> QuerySet[ObservedPod]:
    """Pods of one owner (``slipway/kind``, ``slipway/id``), oldest first; those proven gone only when asked for.

    A pod that is over holds no devices but is not gone. Ownership is proven by the namespace, not by labels alone.
    """
    rows = ObservedPod.objects.filter(owner_kind=kind, owner_id=id).select_related("cluster").order_by("created_at", "id")
    return rows if with_gone else rows.filter(gone_at=None)


def pod_views(*, kind: str, id: str, with_gone: bool = False) -> list[PodView]:
    """``pods_of`` as a page shows it."""
    return [pod_view(row) for row in pods_of(kind=kind, id=id, with_gone=with_gone)]


def pod_view(row: ObservedPod) -> PodView:
    """One row as a page shows it."""
    facts = PodFacts(
        uid=row.uid,
        namespace=row.namespace,
        name=row.name,
        version=0,
        node_name=row.node_name,
        deletion_at=row.deletion_at,
        status=row.status if row.status.get("phase") else {**row.status, "phase": row.phase},
    )
    return PodView(
        uid=row.uid,
        cluster=row.cluster.name,
        namespace=row.namespace,
        name=row.name,
        node_name=row.node_name,
        standing=standing(facts),
        ready=row.ready and row.gone_at is None,
        devices=row.devices,
        generation_stamp=row.generation_stamp,
        pod_ip=row.pod_ip,
        port=row.port,
        created_at=row.created_at,
        running_at=row.running_at,
        observed_at=row.observed_at,
        gone_at=row.gone_at,
        holds_devices=bool(row.node_name) and not facts.over and row.gone_at is None,
    )
