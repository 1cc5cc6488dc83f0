"""The fleet page: every node, its devices, and who holds them. The same number of queries for one node and for thousands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fleet.domain.devices import is_device
from fleet.domain.health import Health, node_health
from fleet.domain.inventory import NodeDevices, profile_of
from fleet.models import Node, ObservedPod
from fleet.selectors.capacity import node_devices, profile_matches
from fleet.selectors.occupancy import holding_pods


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One resource on one node, in devices. ``used`` may exceed ``allocatable`` after a card is withdrawn (C09)."""

    resource_name: str
    capacity: int
    allocatable: int
    used: int
    free: int
    withdrawn: int


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod that holds devices of the node. ``project_id`` "" is nobody of ours; show names only to who may read them."""

    uid: str
    namespace: str
    name: str
    project_id: str
    owner_kind: str
    owner_id: str
    devices: dict[str, int]
    terminating: bool


@dataclass(frozen=True, slots=True)
class NodeView:
    """``health`` carries level and text; ``profile_name`` "" when no GPU profile covers the node."""

    name: str
    cluster: str
    cluster_reachable: bool | None
    profile_name: str
    ready: bool | None
    unschedulable: bool
    health: Health
    devices: tuple[DeviceView, ...]
    pods: tuple[NodePod, ...]
    taints: list[dict[str, str]]
    labels: dict[str, str]
    heartbeat_at: datetime | None
    observed_at: datetime

    @property
    def health_text(self) -> str:
        return self.health.text


def fleet_nodes() -> list[NodeView]:
    """Nodes of the enabled clusters that are not gone, by cluster and name."""
    matches = profile_matches()
    pods: dict[tuple[int, str], list[ObservedPod]] = {}
    for pod in holding_pods().order_by("created_at", "id"):
        pods.setdefault((pod.cluster_id, pod.node_name), []).append(pod)
    bound = {place: _sum(rows) for place, rows in pods.items()}
    rows = (
        Node.objects.filter(gone_at=None, cluster__enabled=True).select_related("cluster").order_by("cluster__name", "name")
    )
    views = []
    for node in rows:
        here = pods.get((node.cluster_id, node.name), [])
        names = {name for name in (*node.capacity, *node.allocatable) if is_device(name)}
        devices = {name: node_devices(node, name, bound) for name in sorted(names)}
        match = profile_of(node.labels, node.capacity, matches)
        views.append(
            NodeView(
                name=node.name,
                cluster=node.cluster.name,
                cluster_reachable=node.cluster.reachable,
                profile_name=match.name if match else "",
                ready=node.ready,
                unschedulable=node.unschedulable,
                health=node_health(
                    ready=node.ready,
                    unschedulable=node.unschedulable,
                    devices=devices,
                    cluster_reachable=node.cluster.reachable,
                ),
                devices=tuple(_device_view(name, item) for name, item in devices.items()),
                pods=tuple(_node_pod(pod) for pod in here),
                taints=node.taints,
                labels=node.labels,
                heartbeat_at=node.heartbeat_at,
                observed_at=node.observed_at,
            )
        )
    return views


def _sum(pods: list[ObservedPod]) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod in pods:
        for resource, count in pod.devices.items():
            total[resource] = total.get(resource, 0) + count
    return total


def _device_view(name: str, devices: NodeDevices) -> DeviceView:
    return DeviceView(
        resource_name=name,
        capacity=devices.capacity,
        allocatable=devices.allocatable,
        used=devices.bound,
        free=devices.free,
        withdrawn=devices.withdrawn,
    )


def _node_pod(pod: ObservedPod) -> NodePod:
    return NodePod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        project_id=pod.project_id,
        owner_kind=pod.owner_kind,
        owner_id=pod.owner_id,
        devices=pod.devices,
        terminating=pod.deletion_at is not None,
    )
