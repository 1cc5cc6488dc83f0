"""A small loop for the engine's own tests: it copies a space's namespace text into a world outside the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.models import ProjectSpace
from portal.tenancy.models import unscoped
from portal.work.domain.outcomes import Outcome, Settled
from portal.work.loop import Reconciler


@dataclass(frozen=True, slots=True)
class CounterView:
    pk: int
    public_id: str
    generation: int
    wanted: str


@dataclass
class CounterLoop(Reconciler[ProjectSpace, CounterView]):
    """``act`` stands for the work on the cluster; ``world`` is what was made there: id -> (generation, text)."""

    kind: str = "counter"
    model: type[ProjectSpace] = ProjectSpace
    act: Callable[[CounterView, datetime], Outcome] | None = None
    loaded: Callable[[int], None] | None = None
    world: dict[str, tuple[int, str]] = field(default_factory=dict)
    recorded: list[tuple[int, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def load(self, pk: int) -> CounterView:
        if self.loaded is not None:
            self.loaded(pk)
        with unscoped("test loop"):
            row = ProjectSpace.objects.get(pk=pk)
        return CounterView(row.pk, row.public_id, row.generation, row.request_id)

    def reconcile(self, view: CounterView, now: datetime) -> Outcome:
        if self.act is not None:
            return self.act(view, now)
        self.world[view.public_id] = (view.generation, view.wanted)
        return Settled()

    def lock_first(self, view: CounterView, outcome: Outcome) -> None:
        self.steps.append("lock_first")

    def record(self, row: ProjectSpace, view: CounterView, outcome: Outcome, now: datetime) -> None:
        self.steps.append("record")
        self.recorded.append((row.generation, outcome))
