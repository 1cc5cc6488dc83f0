"""Hints: "look at this row now". They carry ids only, and losing every one of them only delays work until the sweep.

A nudge makes the row due, which the sweep finds too, and sends the message that saves waiting for it. A floor registers the
task that runs its loop in ``AppConfig.ready``; anybody below nudges the row by (kind, public id).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
import structlog
from celery import current_app
from django.core.cache import cache
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from kombu.exceptions import OperationalError

from portal.kernel.clock import now
from portal.work.models import ReconciledRow

_COALESCE_SECONDS = 10
"""How long a second hint for a row is folded into the first; shorter than a sweep, so that a lost one costs little."""

_CLOCK_SKEW = timedelta(seconds=5)
"""A worker whose clock is this much behind still finds the row due."""

_SILENCE_SECONDS = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LoopKind:
    """``model`` is None where only hints are wanted, not figures."""

    kind: str
    task_name: str
    model: type[ReconciledRow] | None = None


class _Silence:
    """After a call that timed out no other is tried for a while: one click pays one timeout, not one for each hint."""

    def __init__(self) -> None:
        self._until = 0.0

    def lasts(self) -> bool:
        return time.monotonic() < self._until

    def heard(self, error: redis.RedisError) -> None:
        if isinstance(error, redis.TimeoutError):
            self._until = time.monotonic() + _SILENCE_SECONDS


_silence = _Silence()
_kinds: dict[str, LoopKind] = {}


def register(kind: str, task_name: str, model: type[ReconciledRow] | None = None) -> None:
    """Rows of ``kind`` are worked on by the Celery task ``task_name(public_id)``; ``model`` puts the loop on /metrics."""
    _kinds[kind] = LoopKind(kind, task_name, model)


def registered() -> tuple[LoopKind, ...]:
    return tuple(_kinds.values())


def nudge(kind: str, public_id: str) -> None:
    """After the commit of the running transaction (at once outside one), make the row due and ask for a pass over it.

    It takes no lock inside the transaction. Unknown kinds are ignored: labels in a cluster may say anything. A broker or
    database that is down is logged, never raised.
    """
    if kind in _kinds:
        transaction.on_commit(lambda: _make_due_and_send(_kinds[kind], public_id))


def remind(kind: str, public_id: str) -> None:
    """The message alone, for a row that is due already."""
    if kind in _kinds:
        transaction.on_commit(lambda: _send(_kinds[kind].task_name, kind, public_id))


def seen(kind: str, public_id: str) -> None:
    """A pass over the row starts: hints from here on are about news, and are sent again."""
    if _silence.lasts():
        return
    try:
        cache.delete(_key(kind, public_id))
    except redis.RedisError as error:
        _silence.heard(error)
        _log.warning("hint.seen_failed", kind=kind, public_id=public_id, error=str(error))


def _make_due_and_send(kind: LoopKind, public_id: str) -> None:
    if kind.model is not None:
        due = now() - _CLOCK_SKEW
        rows: QuerySet[Any] = kind.model._base_manager.all()
        try:
            rows.filter(public_id=public_id, next_attempt_at__gt=due).update(next_attempt_at=due)
        except DatabaseError as error:
            _log.warning("hint.row_not_marked", kind=kind.kind, public_id=public_id, error=str(error))
    _send(kind.task_name, kind.kind, public_id)


def _send(task_name: str, kind: str, public_id: str) -> None:
    if _silence.lasts():
        return
    try:
        if not cache.add(_key(kind, public_id), now().isoformat(), timeout=_COALESCE_SECONDS):
            return
    except redis.RedisError as error:
        _silence.heard(error)
        _log.warning("hint.not_sent", kind=kind, public_id=public_id, error=str(error))
        return
    try:
        current_app.send_task(task_name, args=[public_id], retry=False, ignore_result=True)
    except (redis.RedisError, OperationalError, OSError) as error:
        _log.warning("hint.not_sent", kind=kind, public_id=public_id, error=str(error))
        seen(kind, public_id)


def _key(kind: str, public_id: str) -> str:
    return f"hint:{kind}:{public_id}"
