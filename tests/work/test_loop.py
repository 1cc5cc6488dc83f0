"""The loop engine, driven by hand with a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction

from fleet.models import ProjectSpace
from portal.kernel.clock import FrozenClock, frozen
from portal.tenancy.models import Project, unscoped
from portal.work import hints
from portal.work.domain.conditions import Condition, Truth
from portal.work.domain.outcomes import CRASHES_MAX, Blocked, Outcome, Retry, Settled, Wait
from portal.work.loop import Verdict, due_count, run_pass, settle, sweep
from portal.work.models import Heartbeat
from portal.work.selectors.loops import loop_figures
from portal.work.services.parts.generations import attention_clear, generation_raise
from tests.cast import make_cluster, make_organization, make_project
from tests.work.counter import CounterLoop, CounterView

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[FrozenClock]:
    with frozen(NOON) as clock:
        yield clock


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The hints that were asked for, in order."""
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: asked.append((kind, public_id)))
    monkeypatch.setattr(hints, "remind", lambda kind, public_id: asked.append((kind, public_id)))
    return asked


@pytest.fixture
def project(clock: FrozenClock) -> Project:
    return make_project(make_organization())


def make_space(project: Project, **fields: object) -> ProjectSpace:
    fields.setdefault("request_id", "one")
    return ProjectSpace.objects.create(cluster=make_cluster(), project=project, namespace=project.namespace, **fields)


@pytest.fixture
def space(project: Project) -> ProjectSpace:
    return make_space(project)


def fresh(space: ProjectSpace) -> ProjectSpace:
    with unscoped("test"):
        return ProjectSpace.objects.get(pk=space.pk)


def outcome_is(outcome: Outcome) -> CounterLoop:
    return CounterLoop(act=lambda view, now: outcome)


def test_a_new_row_is_due_and_settles_until_the_resync(space: ProjectSpace, clock: FrozenClock) -> None:
    loop = CounterLoop()
    report = run_pass(loop)
    assert report is not None
    assert (report.public_id, report.verdict, report.again) == (space.public_id, Verdict.SETTLED, False)
    row = fresh(space)
    assert loop.world == {space.public_id: (1, "one")}
    assert (row.observed_generation, row.attempts, row.crashes, row.lease_token) == (1, 0, 0, None)
    assert row.dirty_since is None
    assert row.next_attempt_at == NOON + timedelta(seconds=settings.RESYNC_SECONDS)
    assert run_pass(loop) is None
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    assert run_pass(loop) is not None


def test_the_outcome_may_ask_for_an_earlier_resync(space: ProjectSpace) -> None:
    run_pass(outcome_is(Settled(resync_after=timedelta(seconds=7))))
    assert fresh(space).next_attempt_at == NOON + timedelta(seconds=7)


def test_rows_are_taken_in_the_order_in_which_they_became_due(project: Project, clock: FrozenClock) -> None:
    late = make_space(project, next_attempt_at=NOON)
    other = make_project(project.organization, slug="other")
    early = make_space(other, next_attempt_at=NOON - timedelta(hours=1))
    assert [report.public_id for report in settle(CounterLoop())] == [early.public_id, late.public_id]


def test_a_wait_is_no_failure(space: ProjectSpace) -> None:
    report = run_pass(outcome_is(Wait(after=timedelta(seconds=5), reason="pods")))
    row = fresh(space)
    assert report is not None
    assert report.verdict == Verdict.WAIT
    assert (row.observed_generation, row.attempts, row.last_error, row.dirty_since) == (1, 0, "", None)
    assert row.next_attempt_at == NOON + timedelta(seconds=5)


def test_retries_back_off_on_the_row_and_are_forgotten_by_success(space: ProjectSpace, clock: FrozenClock) -> None:
    failing = outcome_is(Retry(error="no answer"))
    delays = []
    for _ in range(11):
        assert run_pass(failing) is not None
        row = fresh(space)
        assert (row.observed_generation, row.last_error, row.crashes) == (0, "no answer", 0)
        assert row.dirty_since == NOON
        delay = row.next_attempt_at - clock.at
        delays.append(delay.total_seconds())
        assert run_pass(failing) is None
        clock.advance(delay)
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    run_pass(CounterLoop())
    row = fresh(space)
    assert (row.attempts, row.last_error, row.dirty_since) == (0, "", None)


def test_a_retry_may_name_its_own_delay(space: ProjectSpace) -> None:
    run_pass(outcome_is(Retry(error="429", after=timedelta(seconds=42))))
    assert fresh(space).next_attempt_at == NOON + timedelta(seconds=42)


def test_a_retry_may_cap_its_backoff(space: ProjectSpace, clock: FrozenClock) -> None:
    for _ in range(10):
        run_pass(outcome_is(Retry(error="no answer", at_most=timedelta(seconds=30))))
        delay = fresh(space).next_attempt_at - clock.at
        clock.advance(delay)
    assert delay == timedelta(seconds=30)


def test_a_blocked_row_waits_for_the_resync_and_says_why(space: ProjectSpace) -> None:
    run_pass(outcome_is(Blocked(reason="NameTaken", message="exists already")))
    row = fresh(space)
    assert row.last_error == "NameTaken: exists already"
    assert row.observed_generation == 1
    assert row.next_attempt_at == NOON + timedelta(seconds=settings.RESYNC_SECONDS)


def test_updates_and_conditions_are_written_with_the_outcome(space: ProjectSpace, clock: FrozenClock) -> None:
    said = (Condition("Synced", Truth.TRUE, "Applied"),)
    run_pass(outcome_is(Settled(updates={"applied": [{"name": "x"}]}, conditions=said)))
    row = fresh(space)
    assert row.applied == [{"name": "x"}]
    assert row.conditions[0]["type"] == "Synced"
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    run_pass(outcome_is(Settled()))
    assert fresh(space).conditions == row.conditions


def test_the_steps_of_a_recording(space: ProjectSpace) -> None:
    loop = CounterLoop()
    run_pass(loop)
    assert loop.steps == ["lock_first", "record"]


def test_no_transaction_is_open_while_the_cluster_is_called(space: ProjectSpace) -> None:
    depth = len(connection.savepoint_ids)

    def act(view: CounterView, now: datetime) -> Outcome:
        assert len(connection.savepoint_ids) == depth
        return Settled()

    assert run_pass(CounterLoop(act=act)) is not None


def test_a_change_during_the_pass_is_not_lost(space: ProjectSpace, sent: list[tuple[str, str]]) -> None:
    def act(view: CounterView, now: datetime) -> Outcome:
        if view.generation == 1:
            with transaction.atomic():
                generation_raise(fresh(space), request_id="two")
        loop.world[view.public_id] = (view.generation, view.wanted)
        return Settled()

    loop = CounterLoop(act=act)
    report = run_pass(loop)
    assert report is not None
    assert report.again
    row = fresh(space)
    assert (row.generation, row.observed_generation) == (2, 1)
    assert row.dirty_since == NOON
    assert ("counter", space.public_id) in sent
    assert run_pass(loop) is not None
    assert loop.world[space.public_id] == (2, "two")
    assert fresh(space).observed_generation == 2
    assert run_pass(loop) is None


def test_a_change_during_the_last_pass_of_a_removal_keeps_the_row(space: ProjectSpace) -> None:
    def act(view: CounterView, now: datetime) -> Outcome:
        with transaction.atomic():
            generation_raise(fresh(space), desired="present")
        return Settled(updates={"archived_at": now})

    run_pass(CounterLoop(act=act))
    assert fresh(space).archived_at is None


def test_a_hint_during_the_pass_brings_another_one(space: ProjectSpace, sent: list[tuple[str, str]]) -> None:
    def act(view: CounterView, now: datetime) -> Outcome:
        busy = run_pass(CounterLoop(), view.public_id)
        assert busy is not None
        assert busy.verdict == Verdict.BUSY
        return Settled()

    report = run_pass(CounterLoop(act=act))
    assert report is not None
    assert report.again
    assert sent == [("counter", space.public_id)]
    assert fresh(space).next_attempt_at == NOON
    assert due_count(CounterLoop()) == 1


def test_c29_a_redelivered_hint_finds_nothing_left_to_change(space: ProjectSpace) -> None:
    loop = CounterLoop()
    run_pass(loop, space.public_id)
    before = fresh(space)
    run_pass(loop, space.public_id)
    after = fresh(space)
    assert (after.generation, after.observed_generation) == (before.generation, before.observed_generation)
    assert loop.world == {space.public_id: (1, "one")}


def test_c29_a_task_that_comes_twice_finds_the_row_done(space: ProjectSpace) -> None:
    loop = CounterLoop()
    assert run_pass(loop, space.public_id, only_due=True) is not None
    assert run_pass(loop, space.public_id, only_due=True) is None
    assert len(loop.recorded) == 1


def test_a_task_for_a_row_in_work_leaves_it_to_its_holder(space: ProjectSpace) -> None:
    def act(view: CounterView, now: datetime) -> Outcome:
        assert run_pass(CounterLoop(), view.public_id, only_due=True) is None
        return Settled()

    report = run_pass(CounterLoop(act=act), space.public_id, only_due=True)
    assert report is not None
    assert not report.again


def test_an_archived_row_that_was_nudged_is_worked_on_by_its_name_only(space: ProjectSpace, clock: FrozenClock) -> None:
    run_pass(outcome_is(Settled(updates={"archived_at": NOON})))
    clock.advance(timedelta(days=1))
    assert run_pass(CounterLoop()) is None
    assert run_pass(CounterLoop(), space.public_id, only_due=True) is not None


def test_failures_of_the_database_set_nothing_aside(space: ProjectSpace, clock: FrozenClock) -> None:
    def act(view: CounterView, now: datetime) -> Outcome:
        raise OperationalError("lock timeout")

    for _ in range(CRASHES_MAX * 2):
        with pytest.raises(OperationalError):
            run_pass(CounterLoop(act=act))
        clock.advance(timedelta(minutes=5))
    row = fresh(space)
    assert (row.crashes, row.set_aside_reason) == (0, "")
    assert "lock timeout" in row.last_error
    assert run_pass(CounterLoop()) is not None


def test_a_named_pass_does_not_wait_until_the_row_is_due(space: ProjectSpace) -> None:
    run_pass(outcome_is(Retry(error="no answer", after=timedelta(hours=1))))
    assert run_pass(CounterLoop()) is None
    report = run_pass(CounterLoop(), space.public_id)
    assert report is not None
    assert report.verdict == Verdict.SETTLED


def test_a_name_that_nobody_has(space: ProjectSpace) -> None:
    assert run_pass(CounterLoop(), "spc_nothing") is None


def test_an_archived_row_is_due_no_more_but_still_answers_to_its_name(space: ProjectSpace, clock: FrozenClock) -> None:
    run_pass(outcome_is(Settled(updates={"archived_at": NOON})))
    clock.advance(timedelta(days=1))
    assert run_pass(CounterLoop()) is None
    assert run_pass(CounterLoop(), space.public_id) is not None


def test_a_row_under_a_lease_is_left_alone_until_it_ends(space: ProjectSpace, clock: FrozenClock) -> None:
    token = uuid4()
    with unscoped("test"):
        ProjectSpace.objects.filter(pk=space.pk).update(lease_token=token, lease_until=NOON + timedelta(seconds=30))
    assert run_pass(CounterLoop()) is None
    assert fresh(space).lease_token == token
    clock.advance(timedelta(seconds=30))
    assert run_pass(CounterLoop()) is not None


def test_a_pass_that_lost_its_lease_records_nothing(
    space: ProjectSpace, clock: FrozenClock, sent: list[tuple[str, str]]
) -> None:
    def stall(view: CounterView, now: datetime) -> Outcome:
        clock.advance(timedelta(seconds=settings.LEASE_SECONDS + 1))
        assert run_pass(CounterLoop()) is not None
        return Settled(updates={"applied": ["stale"]})

    loop = CounterLoop(act=stall)
    report = run_pass(loop)
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    row = fresh(space)
    assert row.applied == []
    assert row.observed_generation == 1
    assert loop.recorded == []
    assert sent == [("counter", space.public_id)]


class PoisonError(Exception):
    pass


def test_c32_a_poison_row_is_set_aside_and_others_go_on(project: Project, clock: FrozenClock) -> None:
    poison = make_space(project)
    healthy = make_space(make_project(project.organization, slug="other"))

    def act(view: CounterView, now: datetime) -> Outcome:
        if view.public_id == poison.public_id:
            raise PoisonError("cannot parse config.json")
        return Settled()

    loop = CounterLoop(act=act)
    tries = 0
    for _ in range(50):
        try:
            report = run_pass(loop)
        except PoisonError:
            tries += 1
            row = fresh(poison)
            assert row.last_error == "PoisonError: cannot parse config.json"
            assert row.lease_token is None
            report = None
        if report is None:
            clock.advance(timedelta(minutes=5))
    assert tries == CRASHES_MAX
    row = fresh(poison)
    assert "cannot parse config.json" in row.set_aside_reason
    assert [item["reason"] for item in row.conditions if item["type"] == "SetAside"] == ["NeedsAttention"]
    assert fresh(healthy).observed_generation == 1
    named = run_pass(loop, poison.public_id)
    assert named is not None
    assert named.verdict == Verdict.SET_ASIDE
    assert sweep(loop) <= 1


def test_c32_a_row_that_kills_its_worker_is_counted_without_its_help(space: ProjectSpace, clock: FrozenClock) -> None:
    class Killed(BaseException):
        """The worker is gone: nothing after this runs."""

    def act(view: CounterView, now: datetime) -> Outcome:
        raise Killed

    for _ in range(CRASHES_MAX):
        with pytest.raises(Killed):
            run_pass(CounterLoop(act=act))
        assert fresh(space).lease_token is not None
        assert run_pass(CounterLoop()) is None
        clock.advance(timedelta(seconds=settings.LEASE_SECONDS))
    report = run_pass(CounterLoop(act=act))
    assert report is not None
    assert report.verdict == Verdict.SET_ASIDE
    assert "worker died" in fresh(space).set_aside_reason


def test_c32_a_row_that_cannot_even_be_loaded_is_counted(space: ProjectSpace, clock: FrozenClock) -> None:
    def loaded(pk: int) -> None:
        raise PoisonError("bad row")

    for _ in range(CRASHES_MAX):
        with pytest.raises(PoisonError):
            run_pass(CounterLoop(loaded=loaded))
        clock.advance(timedelta(minutes=5))
    report = run_pass(CounterLoop(loaded=loaded))
    assert report is not None
    assert report.verdict == Verdict.SET_ASIDE


def test_failures_of_the_cluster_set_nothing_aside(space: ProjectSpace, clock: FrozenClock) -> None:
    for _ in range(CRASHES_MAX * 4):
        run_pass(outcome_is(Retry(error="no answer")))
        clock.advance(timedelta(minutes=5))
    assert fresh(space).set_aside_reason == ""
    run_pass(CounterLoop())
    assert fresh(space).observed_generation == 1


@pytest.mark.parametrize("bring_back", [generation_raise, attention_clear])
def test_a_row_set_aside_comes_back(space: ProjectSpace, bring_back: object) -> None:
    with unscoped("test"):
        ProjectSpace.objects.filter(pk=space.pk).update(set_aside_reason="poison", crashes=CRASHES_MAX, attempts=9)
    assert run_pass(CounterLoop()) is None
    row = fresh(space)
    with transaction.atomic():
        bring_back(row)  # type: ignore[operator]
    assert (row.set_aside_reason, row.crashes, row.attempts) == ("", 0, 0)
    assert run_pass(CounterLoop()) is not None


def test_generation_raise_writes_spec_and_generation_in_one_update(
    space: ProjectSpace, clock: FrozenClock, django_assert_num_queries: object
) -> None:
    run_pass(CounterLoop())
    clock.advance(timedelta(seconds=10))
    row = fresh(space)
    with transaction.atomic(), django_assert_num_queries(2):  # type: ignore[operator]
        generation_raise(row, request_id="two", project_id=row.project_id)
    assert (row.generation, row.request_id, row.dirty_since) == (2, "two", clock.at)
    assert fresh(space).generation == 2
    clock.advance(timedelta(seconds=10))
    with transaction.atomic():
        generation_raise(row)
    assert row.dirty_since == NOON + timedelta(seconds=10)


@pytest.mark.django_db(transaction=True)
def test_parts_refuse_to_run_outside_a_transaction(space: ProjectSpace) -> None:
    for part in (generation_raise, attention_clear):
        with pytest.raises(AssertionError, match="inside the transaction"):
            part(space)


def test_the_sweep_hints_what_is_due_and_beats(project: Project, clock: FrozenClock, sent: list[tuple[str, str]]) -> None:
    due = make_space(project)
    for number, fields in enumerate(
        [
            {"next_attempt_at": NOON + timedelta(seconds=1)},
            {"archived_at": NOON},
            {"set_aside_reason": "poison"},
            {"lease_token": uuid4(), "lease_until": NOON + timedelta(seconds=1)},
        ]
    ):
        make_space(make_project(project.organization, slug=f"other-{number}"), **fields)
    assert sweep(CounterLoop()) == 1
    assert sent == [("counter", due.public_id)]
    assert Heartbeat.objects.get(name="sweep:counter").at == NOON


def test_the_sweep_keeps_to_its_limit(project: Project, sent: list[tuple[str, str]]) -> None:
    for number in range(5):
        make_space(make_project(project.organization, slug=f"other-{number}"))
    assert sweep(CounterLoop(), limit=3) == 3
    assert len(sent) == 3


def test_settle_says_so_when_rows_stay_due(space: ProjectSpace) -> None:
    with pytest.raises(RuntimeError, match="still due"):
        settle(outcome_is(Retry(error="x", after=timedelta(0))), passes=3)


def test_figures_of_a_loop(project: Project, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_kinds", {})
    hints.register("counter", "counter.task", ProjectSpace)
    hints.register("only hints", "other.task")
    make_space(project, next_attempt_at=NOON - timedelta(minutes=3), dirty_since=NOON - timedelta(minutes=9))
    rest = [
        {"observed_generation": 1, "dirty_since": None, "next_attempt_at": NOON + timedelta(minutes=1)},
        {"set_aside_reason": "poison", "last_error": "x", "observed_generation": 1, "dirty_since": None},
        {"lease_token": uuid4(), "lease_until": NOON + timedelta(seconds=9), "observed_generation": 1, "dirty_since": None},
        {"archived_at": NOON},
    ]
    for number, fields in enumerate(rest):
        make_space(make_project(project.organization, slug=f"other-{number}"), **fields)
    (figure,) = loop_figures(NOON)
    assert (figure.kind, figure.due, figure.dirty, figure.leased) == ("counter", 1, 1, 1)
    assert (figure.set_aside, figure.failing, figure.swept_at) == (1, 1, None)
    assert figure.oldest_due_at == NOON - timedelta(minutes=3)
    assert figure.oldest_dirty_at == NOON - timedelta(minutes=9)
