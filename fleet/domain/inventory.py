"""From nodes to capacity: which profile a node belongs to, and what of it is free (contract K4, C09)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleet.domain.devices import whole_devices


@dataclass(frozen=True, slots=True)
class ProfileMatch:
    """The part of a GPU profile that says which nodes it covers."""

    id: int
    name: str
    resource_name: str
    node_selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """One resource on one node. ``bound`` counts devices of pods that are on the node and not over.

    ``usable`` is False on a node that takes no new pods: not ready, unknown, cordoned, or not seen.
    """

    capacity: int
    allocatable: int
    bound: int
    usable: bool = True

    @property
    def free(self) -> int:
        """What a new pod could get now; never negative, though more may be bound than is still offered (C09)."""
        return max(0, self.allocatable - self.bound) if self.usable else 0

    @property
    def withdrawn(self) -> int:
        """Devices the node has and no longer offers."""
        return max(0, self.capacity - self.allocatable)


@dataclass(frozen=True, slots=True)
class ProfileCapacity:
    """Devices of one profile. ``total``: what its nodes have; ``allocatable``: what they offer; ``used``: bound now, on
    withdrawn devices too; ``free``: what new pods could get; ``largest_node``: most devices that any one node has.
    ``nodes`` 0 means that none was seen (yet), not that none can come.
    """

    total: int = 0
    allocatable: int = 0
    used: int = 0
    free: int = 0
    nodes: int = 0
    largest_node: int = 0


def count_of(quantities: Mapping[str, object], resource: str) -> int:
    """Whole devices of ``resource`` in a node's capacity or allocatable; 0 when absent or unreadable."""
    return whole_devices(quantities.get(resource, "0")) or 0


def covers(profile: ProfileMatch, labels: Mapping[str, str], capacity: Mapping[str, object]) -> bool:
    """Whether a node belongs to the profile: it has the resource and carries the whole selector.

    What the node really has decides first: labels without the resource match nothing (K4).
    """
    return count_of(capacity, profile.resource_name) > 0 and all(
        labels.get(key) == value for key, value in profile.node_selector.items()
    )


def profile_of(
    labels: Mapping[str, str], capacity: Mapping[str, object], profiles: Iterable[ProfileMatch], resource: str = ""
) -> ProfileMatch | None:
    """The profile that a node (or one resource of it) is counted under: the narrowest selector wins, then the name."""
    fitting = [
        profile
        for profile in profiles
        if (not resource or profile.resource_name == resource) and covers(profile, labels, capacity)
    ]
    return min(fitting, key=lambda profile: (-len(profile.node_selector), profile.name), default=None)


def summed(nodes: Iterable[NodeDevices]) -> ProfileCapacity:
    """The capacity of a profile from its nodes; free is summed node by node, so one node's excess hides no other's room."""
    total = allocatable = used = free = count = largest = 0
    for node in nodes:
        total += node.capacity
        allocatable += node.allocatable
        used += node.bound
        free += node.free
        count += 1
        largest = max(largest, node.capacity)
    return ProfileCapacity(total, allocatable, used, free, count, largest)
