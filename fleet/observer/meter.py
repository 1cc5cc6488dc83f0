"""The meter loop: a full list of every cluster on a timer. Right with the observer stopped (K8)."""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.conf import settings

from fleet.cluster import ClusterError, connect
from fleet.domain.coverage import GAP_AFTER
from fleet.domain.nodes import node_facts
from fleet.domain.pods import pod_facts
from fleet.models import Cluster
from fleet.observer.kinds import NODES, PODS
from fleet.selectors.coverage import covered_until
from fleet.services.coverage import cluster_covered, cluster_lost
from fleet.services.observations import nodes_listed, pods_listed
from portal.kernel.clock import now

_log = structlog.get_logger(__name__)


def meter_pass(public_id: str) -> bool:
    """One cluster, by its public id: list nodes and pods whole, and merge them as the watch's lists are merged.

    False when the cluster did not answer in full: then nothing is closed, and the silence is recorded (C18, D3).
    """
    cluster = Cluster.objects.filter(public_id=public_id, enabled=True).first()
    if cluster is None:
        return False
    longest = timedelta(seconds=2 * settings.METER_SECONDS) + GAP_AFTER
    try:
        port = connect(cluster.credential)
        nodes = port.list_all(NODES.api_version, NODES.kind)
        asked_at = now()
        pods = port.list_all(PODS.api_version, PODS.kind)
        at = now()
    except ClusterError as error:
        _log.warning("meter.lost", cluster=cluster.name, error=str(error))
        cluster_lost(cluster=cluster, source="meter", at=now(), error=str(error), longest=longest)
        return False
    nodes_listed(
        cluster=cluster,
        nodes=[found for raw in nodes.items if (found := node_facts(raw)) is not None],
        version=_number(nodes.resource_version),
        at=asked_at,
    )
    pods_listed(
        cluster=cluster,
        pods=[facts for raw in pods.items if (facts := pod_facts(raw)) is not None],
        version=_number(pods.resource_version),
        asked_at=asked_at,
        at=at,
        covered_at=covered_until(cluster),
    )
    cluster_covered(cluster=cluster, source="meter", at=at, covered_at=asked_at, longest=longest)
    return True


def meter_targets() -> list[str]:
    """Public ids of the clusters that the meter visits."""
    return list(Cluster.objects.filter(enabled=True).order_by("id").values_list("public_id", flat=True))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
