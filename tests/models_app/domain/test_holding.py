from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.holding import devices_to_hold, may_end
from models_app.domain.sightings import PodSighting, Sighting, WorkloadSighting


def seen(live: int, ended: int = 0, *, complete: bool = True) -> Sighting:
    pods = [PodSighting(uid=str(number), name="p", phase="Running") for number in range(live)]
    pods += [PodSighting(uid=f"e{number}", name="p", phase="Failed", ended=True) for number in range(ended)]
    return Sighting(WorkloadSighting(present=True), tuple(pods), complete=complete)


small = st.integers(0, 20)


@given(small, st.integers(1, 20), st.integers(1, 8), small)
def test_the_larger_of_ceiling_and_running_is_held(live: int, ceiling: int, devices: int, ended: int) -> None:
    held = devices_to_hold(wanted=True, ceiling=ceiling, devices_per_replica=devices, seen=seen(live, ended))
    assert held == max(ceiling, live) * devices


@given(small, st.integers(1, 20), st.integers(1, 8))
def test_unwanted_pods_hold_until_proven_gone(live: int, ceiling: int, devices: int) -> None:
    assert devices_to_hold(wanted=False, ceiling=ceiling, devices_per_replica=devices, seen=seen(live)) == live * devices


@given(st.booleans(), small, st.integers(1, 8))
def test_what_was_not_read_to_the_end_changes_no_hold(wanted: bool, live: int, devices: int) -> None:
    for unknown in (None, seen(live, complete=False)):
        assert devices_to_hold(wanted=wanted, ceiling=1, devices_per_replica=devices, seen=unknown) is None
        assert not may_end(wanted=False, seen=unknown, objects_may_make_pods=False)


@given(st.booleans(), small, small, st.booleans())
def test_a_hold_ends_only_when_nothing_is_wanted_runs_or_can_start(
    wanted: bool, live: int, ended: int, makers: bool
) -> None:
    ends = may_end(wanted=wanted, seen=seen(live, ended), objects_may_make_pods=makers)
    assert ends is (not wanted and live == 0 and not makers)
