"""The GPU-time ledger (contract §5): one row per pod uid and resource, a function of the pod's merged evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Q

from fleet.domain.devices import slot_ppm
from fleet.domain.evidence import Evidence
from fleet.domain.findings import Finding
from fleet.domain.inventory import ProfileMatch, profile_of
from fleet.domain.metering import Span, pod_span
from fleet.models import Cluster, GpuInterval, MeterAnomaly, Node, ObservedPod
from fleet.selectors.capacity import profile_matches

_MOVING = (
    "started_at",
    "start_basis",
    "running_at",
    "ended_at",
    "end_basis",
    "end_reason",
    "uncertain_us",
    "devices",
    "gpu_equiv_ppm",
    "profile_name",
)


def intervals_write(*, cluster: Cluster, pods: Sequence[tuple[ObservedPod, Evidence]]) -> None:
    """Open, close or put right the intervals of these pods, by ``pod_span`` alone; an unchanged one is not touched (K8)."""
    if not connection.in_atomic_block:
        raise AssertionError("intervals are written in the transaction of the evidence they follow from")
    metered = [(row, pod_span(evidence)) for row, evidence in pods]
    _anomalies_write(cluster, ((row.uid, finding) for row, answer in metered for finding in answer.findings))
    spans = [(row, answer.span) for row, answer in metered if answer.span is not None and row.devices]
    if not spans:
        return
    matches = profile_matches()
    labels = {node.name: node for node in _nodes_of(cluster, {row.node_name for row, _ in spans})}
    known = {
        (interval.pod_uid, interval.resource_name): interval
        for interval in GpuInterval.objects.filter(cluster=cluster, pod_uid__in=[row.uid for row, _ in spans])
    }
    written = []
    for row, span in spans:
        for resource, count in row.devices.items():
            interval = known.get((row.uid, resource))
            values = {**_span_values(span), **_slot_values(interval, resource, labels.get(row.node_name), matches)}
            values["devices"] = count
            if interval is None or any(getattr(interval, name) != value for name, value in values.items()):
                written.append(_interval(cluster, row, resource, values))
    GpuInterval.objects.bulk_create(
        written,
        update_conflicts=True,
        unique_fields=["cluster", "pod_uid", "resource_name"],
        update_fields=_MOVING,
        batch_size=500,
    )


def _span_values(span: Span) -> dict[str, Any]:
    return {
        "started_at": span.start,
        "start_basis": span.start_basis.value,
        "running_at": span.running_at,
        "ended_at": span.end,
        "end_basis": span.end_basis.value if span.end_basis else "",
        "end_reason": span.end_reason,
        "uncertain_us": span.uncertain_us,
    }


def _slot_values(
    known: GpuInterval | None, resource: str, node: Node | None, matches: Iterable[ProfileMatch]
) -> dict[str, Any]:
    """What a slot is, once known, stays: a later relabelling of the node does not rewrite spent hours (Q3)."""
    ppm = known.gpu_equiv_ppm if known else None
    profile_name = known.profile_name if known else ""
    if node is not None and ppm is None:
        ppm = slot_ppm(resource, node.labels)
    if node is not None and not profile_name:
        match = profile_of(node.labels, node.capacity, matches, resource)
        profile_name = match.name if match else ""
    return {"gpu_equiv_ppm": ppm, "profile_name": profile_name}


def slots_fill(*, cluster: Cluster, nodes: Sequence[Node]) -> None:
    """Nodes became known or changed: say what the slots of open intervals on them are, where that was unknown so far."""
    if not connection.in_atomic_block:
        raise AssertionError("slots are filled in the transaction that stores their nodes")
    by_name = {node.name: node for node in nodes}
    unknown = GpuInterval.objects.filter(cluster=cluster, ended_at=None, node_name__in=by_name).filter(
        Q(profile_name="") | Q(gpu_equiv_ppm=None)
    )
    moved = list(unknown)
    matches = profile_matches() if moved else []
    for interval in moved:
        values = _slot_values(interval, interval.resource_name, by_name[interval.node_name], matches)
        interval.gpu_equiv_ppm, interval.profile_name = values["gpu_equiv_ppm"], values["profile_name"]
    GpuInterval.objects.bulk_update(moved, ["gpu_equiv_ppm", "profile_name"], batch_size=200)


def _interval(cluster: Cluster, row: ObservedPod, resource: str, values: Mapping[str, Any]) -> GpuInterval:
    return GpuInterval(
        cluster=cluster,
        pod_uid=row.uid,
        resource_name=resource,
        namespace=row.namespace,
        pod_name=row.name,
        node_name=row.node_name,
        project_id=row.project_id,
        consumer_kind=row.owner_kind,
        consumer_id=row.owner_id,
        **values,
    )


def _nodes_of(cluster: Cluster, names: set[str]) -> Iterable[Node]:
    """The newest node of each name, those that are gone included: a pod's evidence can outlive its node."""
    return Node.objects.filter(cluster=cluster, name__in=names).order_by("observed_at", "id")


def _anomalies_write(cluster: Cluster, findings: Iterable[tuple[str, Finding]]) -> None:
    rows = [
        MeterAnomaly(cluster=cluster, pod_uid=uid, finding=finding.kind.value, detail=finding.detail)
        for uid, finding in findings
    ]
    MeterAnomaly.objects.bulk_create(rows, ignore_conflicts=True)
