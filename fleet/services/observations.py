"""Writes of what a cluster said: pods, nodes and other watched kinds, by (cluster, uid), the newest version wins.

Observations are evidence, not acts: they have no actor and no audit row. Pods carry their GPU intervals in the same
transaction. Each service may be repeated and reordered freely (K8); one writer per cluster at a time (advisory lock).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from fleet.domain.evidence import Evidence, absent, deleted, seen
from fleet.domain.nodes import NodeFacts
from fleet.domain.objects import ObjectFacts
from fleet.domain.pods import PodFacts
from fleet.models import Cluster, Node, ObservedObject, ObservedPod
from fleet.services.parts.evidence import evidence_of, pods_write
from fleet.services.parts.ledger import slots_fill
from fleet.services.parts.writers import cluster_lock
from portal.work.hints import nudge


@dataclass(frozen=True, slots=True)
class PodSight:
    """One event of a watch: the pod was there (``deleted`` False) or a live DELETED told of its end, at ``at``."""

    facts: PodFacts
    at: datetime
    deleted: bool = False


@transaction.atomic(durable=True)
def pods_seen(*, cluster: Cluster, sights: Sequence[PodSight]) -> int:
    """Merge watch events, in any order and number; the number of pods whose row changed."""
    cluster_lock(cluster)
    known = _known_pods(cluster, {sight.facts.uid for sight in sights})
    merged: dict[str, Evidence] = dict(known)
    for sight in sights:
        before = merged.get(sight.facts.uid)
        if sight.deleted:
            merged[sight.facts.uid] = deleted(before, sight.facts, at=sight.at)
        else:
            merged[sight.facts.uid] = seen(before, sight.facts, at=sight.at)
    return pods_write(cluster=cluster, before=known, after=merged)


@transaction.atomic(durable=True)
def pods_listed(
    *,
    cluster: Cluster,
    pods: Sequence[PodFacts],
    version: int,
    asked_at: datetime,
    at: datetime,
    covered_at: datetime | None = None,
) -> int:
    """Merge a list of all pods, as of ``version``: what it lacks is gone by absence (K1). The number of pods with news.

    Its pods were there at ``asked_at``, when it was asked for; what it lacks was found missing at ``at``, when it finished.
    ``covered_at``: when a watch last proved to be current. Never call this with part of a list (C18).
    """
    cluster_lock(cluster)
    uids = {facts.uid for facts in pods}
    known = _known_pods(cluster, uids, and_live=True)
    merged: dict[str, Evidence] = dict(known)
    for facts in pods:
        merged[facts.uid] = seen(merged.get(facts.uid), facts, at=asked_at, version=version)
    for uid, evidence in known.items():
        if uid not in uids:
            merged[uid] = absent(evidence, version=version, at=at, covered_at=covered_at)
    return pods_write(cluster=cluster, before=known, after=merged)


def _known_pods(cluster: Cluster, uids: set[str], *, and_live: bool = False) -> dict[str, Evidence]:
    rows = ObservedPod.objects.filter(cluster=cluster)
    found = {row.uid: evidence_of(row) for row in rows.filter(uid__in=uids)}
    if and_live:
        found.update((row.uid, evidence_of(row)) for row in rows.filter(gone_at=None).exclude(uid__in=uids))
    return found


@transaction.atomic(durable=True)
def nodes_seen(*, cluster: Cluster, nodes: Sequence[NodeFacts], at: datetime, gone: Iterable[NodeFacts] = ()) -> int:
    """Store nodes of a watch; ``gone`` are those that a DELETED told of. The number of rows written."""
    cluster_lock(cluster)
    written = _nodes_write(cluster, nodes, at)
    for facts in gone:
        live = Node.objects.filter(cluster=cluster, uid=facts.uid, gone_at=None)
        written += live.update(gone_at=at, resource_version=str(facts.version))
    return written


@transaction.atomic(durable=True)
def nodes_listed(*, cluster: Cluster, nodes: Sequence[NodeFacts], version: int, at: datetime) -> int:
    """Store a finished list of nodes; those it lacks are gone, unless they were seen in a later version."""
    cluster_lock(cluster)
    written = _nodes_write(cluster, nodes, at)
    missing = Node.objects.filter(cluster=cluster, gone_at=None).exclude(uid__in=[facts.uid for facts in nodes])
    lost = [row.pk for row in missing if _number(row.resource_version) <= version]
    return written + Node.objects.filter(pk__in=lost).update(gone_at=at)


def _nodes_write(cluster: Cluster, nodes: Sequence[NodeFacts], at: datetime) -> int:
    newest: dict[str, NodeFacts] = {}
    for facts in nodes:
        if facts.uid not in newest or newest[facts.uid].version <= facts.version:
            newest[facts.uid] = facts
    known = {
        uid: _number(version)
        for uid, version in Node.objects.filter(cluster=cluster, uid__in=newest).values_list("uid", "resource_version")
    }
    rows = [
        Node(
            cluster=cluster,
            uid=facts.uid,
            name=facts.name,
            labels=dict(facts.labels),
            annotations=dict(facts.annotations),
            taints=[dict(taint) for taint in facts.taints],
            capacity=dict(facts.capacity),
            allocatable=dict(facts.allocatable),
            ready=facts.ready,
            unschedulable=facts.unschedulable,
            heartbeat_at=facts.heartbeat_at,
            resource_version=str(facts.version),
            observed_at=at,
        )
        for facts in newest.values()
        if facts.version > known.get(facts.uid, -1)
    ]
    fields = [field.name for field in Node._meta.concrete_fields if field.name not in ("id", "cluster", "uid")]
    Node.objects.bulk_create(rows, update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=fields)
    slots_fill(cluster=cluster, nodes=rows)
    unchanged = [facts.uid for facts in newest.values() if facts.version == known.get(facts.uid, -1)]
    Node.objects.filter(cluster=cluster, uid__in=unchanged).update(observed_at=at, gone_at=None)
    return len(rows)


@transaction.atomic(durable=True)
def objects_seen(*, cluster: Cluster, objects: Sequence[ObjectFacts], at: datetime, gone: Iterable[ObjectFacts] = ()) -> int:
    """Store objects of a watch and nudge the loops of their owners; ``gone`` are those that a DELETED told of."""
    cluster_lock(cluster)
    written = _objects_write(cluster, objects, at)
    for facts in gone:
        live = ObservedObject.objects.filter(cluster=cluster, uid=facts.uid, gone_at=None)
        ended = live.update(gone_at=at, resource_version=str(facts.version))
        if ended and facts.owner[1]:
            nudge(*facts.owner)
        written += ended
    return written


@transaction.atomic(durable=True)
def objects_listed(
    *, cluster: Cluster, api_version: str, kind: str, objects: Sequence[ObjectFacts], version: int, at: datetime
) -> int:
    """Store a finished list of one kind; those it lacks are gone, unless they were seen in a later version."""
    cluster_lock(cluster)
    written = _objects_write(cluster, objects, at)
    missing = ObservedObject.objects.filter(cluster=cluster, api_version=api_version, kind=kind, gone_at=None).exclude(
        uid__in=[facts.uid for facts in objects]
    )
    lost = [row.uid for row in missing if _number(row.resource_version) <= version]
    return written + _objects_end(cluster, lost, at)


def _objects_write(cluster: Cluster, objects: Sequence[ObjectFacts], at: datetime) -> int:
    newest: dict[str, ObjectFacts] = {}
    for facts in objects:
        if facts.uid not in newest or newest[facts.uid].version <= facts.version:
            newest[facts.uid] = facts
    known = {
        uid: _number(version)
        for uid, version in ObservedObject.objects.filter(cluster=cluster, uid__in=newest).values_list(
            "uid", "resource_version"
        )
    }
    changed = [facts for facts in newest.values() if facts.version > known.get(facts.uid, -1)]
    rows = [
        ObservedObject(
            cluster=cluster,
            uid=facts.uid,
            api_version=facts.api_version,
            kind=facts.kind,
            namespace=facts.namespace,
            name=facts.name,
            owner_kind=facts.owner[0],
            owner_id=facts.owner[1],
            metadata=dict(facts.metadata),
            status=dict(facts.status),
            resource_version=str(facts.version),
            observed_at=at,
        )
        for facts in changed
    ]
    fields = [field.name for field in ObservedObject._meta.concrete_fields if field.name not in ("id", "cluster", "uid")]
    ObservedObject.objects.bulk_create(rows, update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=fields)
    unchanged = [facts.uid for facts in newest.values() if facts.version == known.get(facts.uid, -1)]
    ObservedObject.objects.filter(cluster=cluster, uid__in=unchanged).update(observed_at=at, gone_at=None)
    for owner in {facts.owner for facts in changed if facts.owner[1]}:
        nudge(*owner)
    return len(rows)


def _objects_end(cluster: Cluster, uids: Sequence[str], at: datetime) -> int:
    ending = ObservedObject.objects.filter(cluster=cluster, uid__in=uids, gone_at=None)
    owners = set(ending.exclude(owner_id="").values_list("owner_kind", "owner_id"))
    ended = ending.update(gone_at=at)
    for owner in owners:
        nudge(*owner)
    return ended


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
