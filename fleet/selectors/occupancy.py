"""Which devices pods hold now: bound to a node, neither over nor gone (contract K1, C01, C04)."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from fleet.domain.pods import OVER
from fleet.models import ObservedPod


def holding_pods() -> QuerySet[ObservedPod]:
    """Pods that hold their devices: a terminating pod still does, a finished one no longer, however old its object."""
    return ObservedPod.objects.filter(~Q(node_name="") & ~Q(phase__in=OVER), gone_at=None).exclude(devices={})


def bound_devices() -> dict[tuple[int, str], dict[str, int]]:
    """(cluster id, node name) -> resource -> devices bound there. One query."""
    bound: dict[tuple[int, str], dict[str, int]] = {}
    for cluster_id, node_name, devices in holding_pods().values_list("cluster_id", "node_name", "devices"):
        node = bound.setdefault((cluster_id, node_name), {})
        for resource, count in devices.items():
            node[resource] = node.get(resource, 0) + count
    return bound
