"""How many devices a deployment must still hold (contract Q1)."""

from __future__ import annotations

from models_app.domain.sightings import Sighting


def devices_to_hold(*, wanted: bool, ceiling: int, devices_per_replica: int, seen: Sighting | None) -> int | None:
    """Devices the hold may be lowered to; None: leave it as it is, since what runs is not known (D3).

    The larger of what the row wants at its ceiling and the devices of pods not proven gone. 0 only when nothing is wanted
    and the last pod is proven gone: the hold then ends. Restart, Recreate and scale to zero keep it.
    """
    if seen is None or not seen.complete:
        return None
    running = len(seen.live_pods) * devices_per_replica
    return max(ceiling * devices_per_replica if wanted else 0, running)


def may_end(*, wanted: bool, seen: Sighting | None, objects_may_make_pods: bool) -> bool:
    """Nothing wanted, the last pod proven gone, and nothing left in the cluster that could start another one."""
    return not wanted and seen is not None and seen.complete and not seen.live_pods and not objects_may_make_pods
