"""What the operators' endpoints need: is a dependency there, and how far behind is each loop, queue and observer.

Counts span all tenants and name none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Model

from fleet.models import Cluster, GpuInterval, Grant
from models_app.models import Deployment
from portal.approvals.models import Request
from portal.kernel.clock import now
from portal.site.queue import QUEUE, SENT_AT
from portal.tenancy.models import unscoped
from portal.work.models import Heartbeat
from portal.work.selectors.loops import LoopFigure, loop_figures

_WHY = "operations: counts over all tenants that name none"


@dataclass(frozen=True, slots=True)
class QueueState:
    """``lag_seconds`` is the age of the oldest message that no worker has taken; None when it carries no stamp."""

    name: str
    messages: int
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class Operations:
    """``counts`` maps a noun to state -> rows; ``heartbeats`` a process to the seconds since its last sign of life.

    ``at`` is when it was read: ages of ``loops`` count to it.
    """

    at: datetime
    loops: tuple[LoopFigure, ...]
    queue: QueueState | None
    heartbeats: dict[str, float]
    clusters: dict[str, bool | None] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    open_intervals: int = 0


def operations() -> Operations:
    """One reading of everything; a fixed number of queries, and no cluster call."""
    at = now()
    with unscoped(_WHY):
        return Operations(
            at=at,
            loops=tuple(loop_figures(at)),
            queue=queue_state(),
            heartbeats={name: age_seconds(seen, at) for name, seen in Heartbeat.objects.values_list("name", "at")},
            clusters=dict(Cluster.objects.filter(enabled=True).values_list("name", "reachable")),
            counts={
                "deployments": _by_state(Deployment, "phase", archived_at=None),
                "requests": _by_state(Request, "state"),
                "grants": _by_state(Grant, "state"),
            },
            open_intervals=GpuInterval.objects.filter(ended_at=None).count(),
        )


def queue_state() -> QueueState | None:
    """The Celery queue as Valkey holds it; None when Valkey does not answer."""
    client = redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=2, socket_connect_timeout=2)
    try:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.llen(QUEUE)
            pipeline.lindex(QUEUE, -1)
            length, oldest = pipeline.execute()
    except redis.RedisError:
        return None
    finally:
        client.close()
    return QueueState(name=QUEUE, messages=int(length), lag_seconds=_message_age(oldest) if oldest else 0.0)


def valkey_problem() -> str:
    """Why Valkey cannot be used now; "" when it answers."""
    return "" if queue_state() is not None else "Valkey does not answer: hints are lost and the sweeps do the work."


def database_problem() -> str:
    """Why the database cannot be used now; "" when it answers and has every migration of this code."""
    try:
        connection = connections[DEFAULT_DB_ALIAS]
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return f"The database does not answer: {type(error).__name__}."
    if missing:
        return f"{len(missing)} migrations are not applied: run manage.py migrate."
    return ""


def _by_state(model: type[Model], column: str, **conditions: Any) -> dict[str, int]:
    rows: Iterable[tuple[str, int]] = (
        model._default_manager.filter(**conditions).order_by(column).values_list(column).annotate(rows=Count("pk"))
    )
    return dict(rows)


def age_seconds(since: datetime | None, at: datetime) -> float:
    """Seconds from ``since`` to ``at``, never negative; 0 when nothing waits."""
    return max(0.0, (at - since).total_seconds()) if since is not None else 0.0


def _message_age(raw: bytes) -> float | None:
    try:
        return age_seconds(datetime.fromisoformat(json.loads(raw)["headers"][SENT_AT]), now())
    except (ValueError, KeyError, TypeError):
        return None
