"""Node health in words: Ready is one thing, the devices another (contract §2, C09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleet.domain.inventory import NodeDevices


class HealthLevel(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Health:
    """``text`` is what a page shows, worst news first."""

    level: HealthLevel
    text: str


def node_health(
    *, ready: bool | None, unschedulable: bool, devices: Mapping[str, NodeDevices], cluster_reachable: bool | None
) -> Health:
    """A node that is Ready can still have lost a card; one whose cluster is not seen is unknown, not down (D3)."""
    if cluster_reachable is False:
        return Health(HealthLevel.UNKNOWN, "unknown: cluster not reachable")
    if ready is None:
        return Health(HealthLevel.UNKNOWN, "unknown: the node reports nothing")
    if not ready:
        return Health(HealthLevel.DOWN, "not ready")
    withdrawn = sum(item.withdrawn for item in devices.values())
    cordoned = "; cordoned" if unschedulable else ""
    if withdrawn:
        total = sum(item.capacity for item in devices.values())
        return Health(HealthLevel.DEGRADED, f"degraded: {withdrawn} of {total} devices withdrawn{cordoned}")
    return Health(HealthLevel.DEGRADED, "cordoned") if unschedulable else Health(HealthLevel.HEALTHY, "healthy")
