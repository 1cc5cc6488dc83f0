"""The one loop engine: people change rows, passes make the cluster follow (design §3).

One pass over one row:

1. Claim: a row nobody leases, skipping locked ones; write a lease token, count the attempt, commit.
2. Load a frozen view; no transaction stays open.
3. ``Reconciler.reconcile`` reads the cluster, decides, applies, and ends in an outcome.
4. Record, only where the lease token still holds, with the generation read in step 2. Whoever asked for the row meanwhile
   (a hint, a new generation) gets another pass.

A lease does not fence a cluster: a stalled worker can wake and apply an older generation. The fence is the uid and
resourceVersion on each apply, and the stamped generation (contract D4): ``fleet.domain.stamps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from portal.kernel.clock import now
from portal.work import hints
from portal.work.domain.conditions import Condition, Truth, merged
from portal.work.domain.outcomes import CRASHES_MAX, Blocked, Outcome, Retry, Settled, Wait, backoff
from portal.work.models import Heartbeat, ReconciledRow

_log = structlog.get_logger(__name__)

Row = TypeVar("Row", bound=ReconciledRow)
View = TypeVar("View")


class Reconciler(Generic[Row, View]):
    """One kind of row, and how to make it true. One instance per process, without state of its own.

    ``kind`` is also the value of the label ``slipway/kind`` on what it owns; ``model`` has a ``public_id``.
    """

    kind: str
    model: type[Row]

    def load(self, pk: int) -> View:
        """The row and all that its rules need, frozen. Its short transaction ends before the cluster is called."""
        raise NotImplementedError

    def reconcile(self, view: View, now: datetime) -> Outcome:
        """Read the cluster, decide, apply. No transaction is open; whatever it does must be safe to repeat."""
        raise NotImplementedError

    def lock_first(self, view: View, outcome: Outcome) -> None:
        """Lock what comes before the row in the lock order (request, grants by id), inside the recording transaction."""

    def record(self, row: Row, view: View, outcome: Outcome, now: datetime) -> None:
        """Write what else the outcome means, inside the recording transaction: the row is locked, and the lease holds.

        ``row`` is as it was before this pass; the loop writes ``outcome.updates`` right after.
        """


class Verdict(StrEnum):
    SETTLED = "settled"
    WAIT = "wait"
    RETRY = "retry"
    BLOCKED = "blocked"
    LOST_LEASE = "lost_lease"
    BUSY = "busy"
    SET_ASIDE = "set_aside"


_VERDICTS: dict[type[Outcome], Verdict] = {
    Settled: Verdict.SETTLED,
    Wait: Verdict.WAIT,
    Retry: Verdict.RETRY,
    Blocked: Verdict.BLOCKED,
}


@dataclass(frozen=True, slots=True)
class Report:
    """What a call of ``run_pass`` did; ``again`` when news came meanwhile and the row was hinted for another pass."""

    public_id: str
    verdict: Verdict
    outcome: Outcome | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Claim:
    pk: int
    public_id: str
    request_id: str
    token: UUID
    attempts: int
    until: datetime


def run_pass(reconciler: Reconciler[Any, Any], public_id: str | None = None, *, only_due: bool = False) -> Report | None:
    """One pass over the row ``public_id``, due or not, or over the row that is due longest. None: there is none.

    ``only_due`` is for tasks: a message that comes twice, or late, finds the row done and ends (C29). A named row may be
    archived: an object of it that turned up late is then removed by its own loop. A row under somebody's lease answers
    BUSY, and its holder looks again. An error that the reconciler does not turn into an outcome is
    counted, kept in ``last_error`` and raised; after ``CRASHES_MAX`` of them in a row, dead workers included, the row is set
    aside with the reason until its generation is raised (C32).
    """
    if public_id is not None:
        hints.seen(reconciler.kind, public_id)
    claimed = _claim(reconciler, public_id, only_due=only_due)
    if not isinstance(claimed, _Claim):
        return claimed
    with structlog.contextvars.bound_contextvars(
        loop=reconciler.kind, public_id=claimed.public_id, request_id=claimed.request_id
    ):
        return _work(reconciler, claimed)


def _work(reconciler: Reconciler[Any, Any], claimed: _Claim) -> Report:
    try:
        with transaction.atomic():
            generation = _rows(reconciler).values_list("generation", flat=True).get(pk=claimed.pk)
            view = reconciler.load(claimed.pk)
        outcome = reconciler.reconcile(view, now())
        return _record(reconciler, claimed, generation, view, outcome)
    except (OperationalError, InterfaceError) as error:
        # The database, and not the row, is to blame: it does not count towards setting the row aside. The lease is given
        # back over a new connection where this one is dead.
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        _crashed(reconciler, claimed, f"{type(error).__name__}: {error}", counted=False)
        raise
    except Exception as error:
        _crashed(reconciler, claimed, f"{type(error).__name__}: {error}", counted=True)
        raise


def sweep(reconciler: Reconciler[Any, Any], limit: int = 500) -> int:
    """Hint up to ``limit`` due rows, those due longest first; the number of them. Beats once in ``sweep:<kind>``."""
    at = now()
    due = list(_due(reconciler, at).order_by("next_attempt_at", "pk").values_list("public_id", flat=True)[:limit])
    for public_id in due:
        hints.remind(reconciler.kind, public_id)
    Heartbeat.objects.update_or_create(
        name=f"sweep:{reconciler.kind}", defaults={"at": at, "detail": {"due": len(due), "limit": limit}}
    )
    return len(due)


def settle(reconciler: Reconciler[Any, Any], passes: int = 100) -> list[Report]:
    """Run passes until no row is due, at most ``passes``: for commands and tests that drive a loop by hand."""
    reports: list[Report] = []
    for _ in range(passes):
        report = run_pass(reconciler)
        if report is None:
            return reports
        reports.append(report)
    raise RuntimeError(f"{reconciler.kind}: rows are still due after {passes} passes")


def due_count(reconciler: Reconciler[Any, Any]) -> int:
    """Rows that a worker could take now."""
    return _due(reconciler, now()).count()


def _rows(reconciler: Reconciler[Any, Any]) -> QuerySet[Any]:
    """All rows, of all tenants: the base manager, as portal.work sits below tenancy and knows no scope."""
    rows: QuerySet[Any] = reconciler.model._base_manager.all()
    return rows


def _free(at: datetime) -> Q:
    return Q(lease_token=None) | Q(lease_until__lte=at)


def _is_due(at: datetime) -> Q:
    """On the claimed row itself, never in a subquery: Postgres checks it again on the version of the row that it locks."""
    return _free(at) & Q(archived_at=None, set_aside_reason="", next_attempt_at__lte=at)


def _due(reconciler: Reconciler[Any, Any], at: datetime) -> QuerySet[Any]:
    return _rows(reconciler).filter(_is_due(at))


def _claim(reconciler: Reconciler[Any, Any], public_id: str | None, *, only_due: bool) -> _Claim | Report | None:
    at = now()
    with transaction.atomic(durable=True):
        rows = _rows(reconciler).select_for_update(skip_locked=True, of=("self",))
        if public_id is None:
            row = rows.filter(_is_due(at)).order_by("next_attempt_at", "pk").first()
        else:
            asked = rows.filter(_free(at), public_id=public_id)
            row = (asked.filter(next_attempt_at__lte=at) if only_due else asked).first()
        if row is None:
            return None if public_id is None or only_due else _ask_again(reconciler, public_id, at)
        if row.set_aside_reason:
            return Report(row.public_id, Verdict.SET_ASIDE)
        if row.crashes >= CRASHES_MAX:
            return _set_aside(reconciler, row, at)
        until = at + timedelta(seconds=settings.LEASE_SECONDS)
        claim = _Claim(row.pk, row.public_id, getattr(row, "request_id", ""), uuid4(), row.attempts + 1, until)
        _rows(reconciler).filter(pk=row.pk).update(
            lease_token=claim.token,
            lease_until=until,
            next_attempt_at=until,
            attempts=claim.attempts,
            crashes=row.crashes + 1,
        )
        return claim


def _ask_again(reconciler: Reconciler[Any, Any], public_id: str, at: datetime) -> Report | None:
    """The row is leased or being claimed: move its ``next_attempt_at``, by which the holder knows that there is news."""
    asked = _rows(reconciler).filter(public_id=public_id, archived_at=None).update(next_attempt_at=at)
    return Report(public_id, Verdict.BUSY) if asked else None


def _set_aside(reconciler: Reconciler[Any, Any], row: ReconciledRow, at: datetime) -> Report:
    reason = f"{row.crashes} passes in a row ended without a result; the last one: {row.last_error or 'its worker died'}"
    condition = Condition("SetAside", Truth.TRUE, "NeedsAttention", reason)
    others = [item for item in row.conditions if item["type"] != condition.type]
    _rows(reconciler).filter(pk=row.pk).update(
        set_aside_reason=reason,
        conditions=[*others, *merged(row.conditions, [condition], at)],
        lease_token=None,
        lease_until=None,
    )
    public_id = str(row.public_id)  # type: ignore[attr-defined]
    _log.error("loop.set_aside", kind=reconciler.kind, public_id=public_id, reason=reason)
    return Report(public_id, Verdict.SET_ASIDE)


def _record(reconciler: Reconciler[Any, Any], claim: _Claim, generation: int, view: Any, outcome: Outcome) -> Report:
    at = now()
    with transaction.atomic(durable=True):
        reconciler.lock_first(view, outcome)
        row = _rows(reconciler).select_for_update(of=("self",)).filter(pk=claim.pk, lease_token=claim.token).first()
        if row is None:
            # Somebody else holds the row now. What this pass did to the cluster may be older than what they did: look again.
            hints.nudge(reconciler.kind, claim.public_id)
            _log.warning("loop.lost_lease")
            return Report(claim.public_id, Verdict.LOST_LEASE, outcome)
        again = row.generation != generation or row.next_attempt_at != claim.until
        reconciler.record(row, view, outcome, at)
        written = {**_columns(row, claim, generation, outcome, at), **outcome.updates}
        if outcome.conditions is not None:
            written["conditions"] = merged(row.conditions, outcome.conditions, at)
        if again:
            written |= {
                "next_attempt_at": at,
                "archived_at": None if row.generation != generation else written.get("archived_at"),
            }
        if row.generation != generation:
            written["dirty_since"] = row.dirty_since or at
        _rows(reconciler).filter(pk=row.pk).update(lease_token=None, lease_until=None, crashes=0, **written)
        if again:
            hints.nudge(reconciler.kind, claim.public_id)
    verdict = _VERDICTS[type(outcome)]
    _log.info("loop.pass", verdict=verdict.value, generation=generation, again=again)
    return Report(claim.public_id, verdict, outcome, again)


def _columns(row: ReconciledRow, claim: _Claim, generation: int, outcome: Outcome, at: datetime) -> dict[str, Any]:
    """The loop's own columns for the outcome; ``crashes`` and the lease are cleared by any of them."""
    if isinstance(outcome, Retry):
        delay = min(backoff(claim.attempts), outcome.at_most) if outcome.after is None else outcome.after
        return {"last_error": outcome.error, "next_attempt_at": at + delay, "dirty_since": row.dirty_since or at}
    resync = timedelta(seconds=settings.RESYNC_SECONDS)
    columns: dict[str, Any] = {"observed_generation": generation, "attempts": 0, "dirty_since": None, "last_error": ""}
    if isinstance(outcome, Blocked):
        return {**columns, "last_error": f"{outcome.reason}: {outcome.message}", "next_attempt_at": at + resync}
    if isinstance(outcome, Wait):
        return {**columns, "next_attempt_at": at + outcome.after}
    asked = outcome.resync_after if isinstance(outcome, Settled) else None
    return {**columns, "next_attempt_at": at + (asked or resync)}


def _crashed(reconciler: Reconciler[Any, Any], claim: _Claim, error: str, *, counted: bool) -> None:
    """Give the lease back and wait the backoff; ``crashes`` was counted at the claim and stays when ``counted``."""
    at = now()
    _rows(reconciler).filter(pk=claim.pk, lease_token=claim.token).update(
        lease_token=None,
        lease_until=None,
        last_error=error,
        crashes=F("crashes") - (0 if counted else 1),
        next_attempt_at=at + backoff(claim.attempts),
        dirty_since=Coalesce(F("dirty_since"), Value(at)),
    )
    _log.error("loop.crashed", error=error)
