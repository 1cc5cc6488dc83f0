"""How many devices of each profile there are, are taken, and are free now."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.domain.inventory import NodeDevices, ProfileCapacity, ProfileMatch, count_of, covers, summed
from fleet.models import GpuProfile, Node
from fleet.selectors.occupancy import bound_devices


def profile_matches() -> list[ProfileMatch]:
    """Every profile, disabled ones too (their pods go on), as node matching reads it."""
    rows = GpuProfile.objects.values_list("id", "name", "resource_name", "node_selector")
    return [
        ProfileMatch(id=pk, name=name, resource_name=resource, node_selector=selector)
        for pk, name, resource, selector in rows
    ]


def profile_capacity(*, profile_ids: Iterable[int] | None = None) -> dict[int, ProfileCapacity]:
    """Profile id -> capacity over all enabled clusters; zeros for one without nodes. Three queries, whatever the fleet.

    Profiles may overlap: a node counts under each that covers it.
    Devices on nodes that take no new pods (not ready, cordoned, cluster not reachable) count in ``total`` and ``used``,
    never in ``free``.
    """
    wanted = set(profile_ids) if profile_ids is not None else None
    matches = [match for match in profile_matches() if wanted is None or match.id in wanted]
    bound = bound_devices()
    found: dict[int, list[NodeDevices]] = {match.id: [] for match in matches}
    for node in Node.objects.filter(gone_at=None, cluster__enabled=True).select_related("cluster"):
        for match in matches:
            if covers(match, node.labels, node.capacity):
                found[match.id].append(node_devices(node, match.resource_name, bound))
    return {pk: summed(nodes) for pk, nodes in found.items()}


def node_devices(node: Node, resource: str, bound: dict[tuple[int, str], dict[str, int]]) -> NodeDevices:
    """One resource of one node, with what ``bound_devices`` says is taken there."""
    return NodeDevices(
        capacity=count_of(node.capacity, resource),
        allocatable=count_of(node.allocatable, resource),
        bound=bound.get((node.cluster_id, node.name), {}).get(resource, 0),
        usable=node.ready is True and not node.unschedulable and node.cluster.reachable is not False,
    )
