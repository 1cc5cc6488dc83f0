"""Who writes replicas (design §3, case C20): the row while it has no autoscaler, the autoscaler while it has one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplicaRange:
    """``minimum`` ≤ ``maximum``. Both equal: fixed. ``minimum`` 0: scaled to zero and wakeable, no autoscaler."""

    minimum: int
    maximum: int

    @property
    def autoscaled(self) -> bool:
        """An autoscaler moves the count between the bounds. A stopped deployment (0) is woken by its row, not by one."""
        return 1 <= self.minimum < self.maximum

    def clamped(self, count: int) -> int:
        return max(self.minimum, min(self.maximum, count))


@dataclass(frozen=True, slots=True)
class ReplicasPlan:
    """``value`` is what the apply states; None leaves the field out. ``take_back`` allows a takeover of that one field."""

    value: int | None
    take_back: bool = False


def replicas_plan(
    wanted: ReplicaRange, *, live: Mapping[str, Any] | None, manager: str, autoscaler_was_ours: bool = False
) -> ReplicasPlan:
    """What the next apply says of ``spec.replicas``, given the ``live`` Deployment (None: absent).

    - No autoscaler: the row's count. When the row had one before (``autoscaler_was_ours``) and its controller owns
      the field, taking back is the listed takeover.
    - Autoscaler, and anybody but us owns the field (or nobody does): left out.
    - Autoscaler, and only we own it: dropping it now would reset it to 1, so the live count is stated until the
      autoscaler has written and owns it.
    """
    if not wanted.autoscaled:
        return ReplicasPlan(value=wanted.minimum, take_back=autoscaler_was_ours)
    if live is None:
        return ReplicasPlan(value=None)
    owners = replica_owners(live)
    if owners == {manager}:
        return ReplicasPlan(value=int(live.get("spec", {}).get("replicas", 1)))
    return ReplicasPlan(value=None)


def replica_owners(live: Mapping[str, Any]) -> set[str]:
    """The field managers that own ``spec.replicas`` of the ``live`` object, by its ``metadata.managedFields``."""
    entries: Iterable[Mapping[str, Any]] = live.get("metadata", {}).get("managedFields", ())
    return {
        str(entry.get("manager", "")) for entry in entries if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    }
