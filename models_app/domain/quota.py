"""What a grant and the fleet say to an ask (contract Q1, ``WaitingForQuota`` and its kin), as plain checks with numbers."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.domain.fit import FitAnswer, FitCheck

HOURS_A_MONTH = 730
"""A month of GPU-hours, unless a policy sets another (contract M3)."""


@dataclass(frozen=True, slots=True)
class GrantRoom:
    """A usable grant: ``devices`` in all, ``free`` not held by others."""

    devices: int
    free: int


def grant_check(room: GrantRoom | None, *, devices: int, profile_title: str) -> FitCheck:
    """Does the grant allow ``devices`` (replica ceiling × devices a replica)? Beyond the whole grant it never will."""
    if room is None:
        text = f"The project has no grant of {profile_title} that runs now: ask for one first."
        return FitCheck("grant", FitAnswer.REFUSED, text, "profile", "ExceedsMaxQuota")
    if devices > room.devices:
        text = (
            f"This holds {devices} devices at its ceiling; the whole grant of {profile_title} has {room.devices}. "
            "Ask for fewer replicas or devices, or for a larger grant."
        )
        return FitCheck("grant", FitAnswer.REFUSED, text, "replicas_max", "ExceedsMaxQuota")
    if devices > room.free:
        text = f"This holds {devices} devices; {room.free} of the grant's {room.devices} are free: approval waits for quota."
        return FitCheck("grant", FitAnswer.EXPERIMENTAL, text, "replicas_max", "WaitingForQuota")
    return FitCheck("grant", FitAnswer.FITS, f"{devices} of {room.free} free devices of the grant ({room.devices} in all).")


def capacity_check(*, free: int, nodes: int, devices: int, replicas: int) -> FitCheck:
    """How many devices are free in the fleet now; a shortage lets it wait, it refuses nothing."""
    if nodes == 0:
        return FitCheck("capacity", FitAnswer.UNKNOWN, "No node of this profile was seen yet: free devices are unknown.")
    needed = devices * max(replicas, 1)
    if needed > free:
        text = f"It starts with {needed} devices; {free} are free now: it waits for capacity."
        return FitCheck("capacity", FitAnswer.EXPERIMENTAL, text, reason="WaitingForCapacity")
    return FitCheck("capacity", FitAnswer.FITS, f"{free} devices are free now; it starts with {needed}.")


def hours_text(*, devices_low: int, devices_high: int) -> str:
    """GPU-hours a month when it runs all month, at its floor and at its ceiling."""
    low, high = devices_low * HOURS_A_MONTH, devices_high * HOURS_A_MONTH
    if low == high:
        return f"{high:,} GPU-hours"
    return f"{low:,} to {high:,} GPU-hours"
