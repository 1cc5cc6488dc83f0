"""Evidence of pods <-> their rows; what changed is written with its GPU intervals, and its owner's loop is nudged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

from fleet.domain.evidence import Evidence, GoneBasis
from fleet.domain.pods import PodFacts
from fleet.models import Cluster, ObservedPod, ProjectSpace
from fleet.services.parts.ledger import intervals_write
from portal.tenancy.models import unscoped
from portal.work.hints import nudge

_IDENTITY = ("id", "cluster", "uid")


def evidence_of(row: ObservedPod) -> Evidence:
    """The merged evidence that a row holds."""
    return Evidence(
        facts=facts_of(row),
        seen_at=row.observed_at,
        seen_version=row.seen_version,
        active_at=row.active_at,
        over_at=row.over_at,
        running_at=row.running_at,
        gone_at=row.gone_at,
        gone_basis=GoneBasis(row.gone_basis) if row.gone_basis else None,
        gone_version=row.gone_version,
    )


def facts_of(row: ObservedPod) -> PodFacts:
    """The newest version of the pod, as far as its row keeps it."""
    return PodFacts(
        uid=row.uid,
        namespace=row.namespace,
        name=row.name,
        version=int(row.resource_version) if row.resource_version.isdigit() else 0,
        node_name=row.node_name,
        labelled_kind=row.owner_kind,
        labelled_id=row.owner_id,
        labelled_project=row.project_id,
        generation_stamp=row.generation_stamp,
        requests=row.devices,
        pod_ip=row.pod_ip,
        port=row.port,
        created_at=row.created_at,
        deletion_at=row.deletion_at,
        status=row.status,
    )


def pods_write(*, cluster: Cluster, before: Mapping[str, Evidence], after: Mapping[str, Evidence]) -> int:
    """Write the evidence that differs; the number of pods with news, beyond a proof of life."""
    if not connection.in_atomic_block:
        raise AssertionError("pods and their intervals are one transaction")
    changed = [evidence for uid, evidence in after.items() if evidence != before.get(uid)]
    if not changed:
        return 0
    news = [evidence for evidence in changed if _is_news(before.get(evidence.facts.uid), evidence)]
    _alive_write(cluster, [evidence for evidence in changed if not _is_news(before.get(evidence.facts.uid), evidence)])
    projects = _projects_of(cluster, {evidence.facts.namespace for evidence in news})
    rows = [_row(cluster, evidence, projects.get(evidence.facts.namespace, "")) for evidence in news]
    ObservedPod.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cluster", "uid"],
        update_fields=[field.name for field in ObservedPod._meta.concrete_fields if field.name not in _IDENTITY],
        batch_size=500,
    )
    intervals_write(cluster=cluster, pods=list(zip(rows, news, strict=True)))
    for owner in {(row.owner_kind, row.owner_id) for row in rows if row.owner_id}:
        nudge(*owner)
    return len(rows)


def _alive_write(cluster: Cluster, evidence: Sequence[Evidence]) -> None:
    """Only the proof of life moved: one statement, however many pods a list proved."""
    if not evidence:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE fleet_observedpod AS pod
            SET observed_at = new.seen_at, seen_version = new.seen_version, active_at = new.active_at
            FROM unnest(%s::text[], %s::timestamptz[], %s::bigint[], %s::timestamptz[])
                AS new (uid, seen_at, seen_version, active_at)
            WHERE pod.cluster_id = %s AND pod.uid = new.uid
            """,
            [
                [item.facts.uid for item in evidence],
                [item.seen_at for item in evidence],
                [item.seen_version for item in evidence],
                [item.active_at for item in evidence],
                cluster.pk,
            ],
        )


def _is_news(old: Evidence | None, new: Evidence) -> bool:
    """Whether more than the proof of life moved; of a pod that is over or gone, that proof itself can decide the end."""
    if old is None or old.facts is not new.facts:
        return True
    if new.gone_at is not None or old.gone_at is not None:
        return old != new
    return (old.over_at, old.running_at) != (new.over_at, new.running_at) or (
        new.facts.over and old.active_at != new.active_at
    )


def _projects_of(cluster: Cluster, namespaces: Iterable[str]) -> dict[str, str]:
    """Namespace -> public id of the project it belongs to; a label proves nothing, the space's row does."""
    with unscoped("the observer assigns pods of every project"):
        spaces = ProjectSpace.objects.filter(cluster=cluster, namespace__in=set(namespaces))
        return dict(spaces.values_list("namespace", "project__public_id"))


def _row(cluster: Cluster, evidence: Evidence, project_id: str) -> ObservedPod:
    facts = evidence.facts
    owned = project_id != "" and facts.labelled_project == project_id
    return ObservedPod(
        cluster=cluster,
        uid=facts.uid,
        namespace=facts.namespace,
        name=facts.name,
        node_name=facts.node_name,
        owner_kind=facts.labelled_kind if owned else "",
        owner_id=facts.labelled_id if owned else "",
        project_id=project_id,
        generation_stamp=facts.generation_stamp,
        devices=dict(facts.requests),
        phase=facts.phase,
        ready=facts.ready,
        pod_ip=facts.pod_ip,
        port=facts.port,
        status=dict(facts.status),
        created_at=facts.created_at,
        deletion_at=facts.deletion_at,
        resource_version=str(facts.version),
        observed_at=evidence.seen_at,
        gone_at=evidence.gone_at,
        gone_basis=evidence.gone_basis or "",
        gone_version=evidence.gone_version,
        seen_version=evidence.seen_version,
        active_at=evidence.active_at,
        over_at=evidence.over_at,
        running_at=evidence.running_at,
    )
