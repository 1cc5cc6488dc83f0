"""How the loops are doing: for /metrics, /readyz and the operators' page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, Q

from portal.work.hints import LoopKind, registered
from portal.work.models import Heartbeat


@dataclass(frozen=True, slots=True)
class LoopFigure:
    """``due``: rows a worker could take; ``dirty``: rows whose generation was not seen through yet; ``leased``: in a pass.

    ``oldest_due_at`` is when the row waiting longest became due, ``oldest_dirty_at`` when the oldest change was made that
    is not in the cluster yet; None when there is none. ``swept_at`` is the last sweep.
    """

    kind: str
    due: int
    dirty: int
    leased: int
    set_aside: int
    failing: int
    oldest_due_at: datetime | None
    oldest_dirty_at: datetime | None
    swept_at: datetime | None


def loop_figures(now: datetime) -> list[LoopFigure]:
    """One figure for each loop registered with its model; one query each."""
    return [_figure(kind, now) for kind in registered() if kind.model is not None]


def _figure(kind: LoopKind, now: datetime) -> LoopFigure:
    assert kind.model is not None  # noqa: S101 - for the type checker; filtered above
    free = Q(lease_token=None) | Q(lease_until__lte=now)
    due = free & Q(next_attempt_at__lte=now, set_aside_reason="")
    dirty = ~Q(generation=F("observed_generation")) | ~Q(dirty_since=None)
    # All tenants at once: portal.work sits below tenancy and shows counts only.
    figures = kind.model._base_manager.filter(archived_at=None).aggregate(
        due=Count("pk", filter=due),
        dirty=Count("pk", filter=dirty),
        leased=Count("pk", filter=~free),
        set_aside=Count("pk", filter=~Q(set_aside_reason="")),
        failing=Count("pk", filter=~Q(last_error="")),
        oldest_due_at=Min("next_attempt_at", filter=due),
        oldest_dirty_at=Min("dirty_since", filter=dirty),
    )
    swept = Heartbeat.objects.filter(name=f"sweep:{kind.kind}").values_list("at", flat=True).first()
    return LoopFigure(kind=kind.kind, swept_at=swept, **figures)
