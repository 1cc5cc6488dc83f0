"""Eight workers on real Postgres: no edit lost, no row held twice, and in the cluster no generation after a later one."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import close_old_connections, connection, transaction

from fleet.cluster import placed
from fleet.domain.stamps import generation_of
from fleet.models import Grant, ProjectSpace
from fleet.reconcile.spaces import RECONCILER
from fleet.services.parts.spaces import space_ensure, space_touch
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.domain.outcomes import Outcome, Retry, Settled
from portal.work.loop import run_pass, sweep
from portal.work.services.parts.generations import generation_raise
from tests.cast import Cast, actor_of, make_cluster, make_grant, make_organization, make_profile, make_project
from tests.fleet.cluster.fake import FakeCluster
from tests.work.counter import CounterLoop, CounterView

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]
WORKERS = 8


class CrashError(Exception):
    """The pass raised."""


class KilledError(BaseException):
    """The worker is gone in the middle: no line after this runs, and its lease stays."""


@pytest.fixture(autouse=True)
def no_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """All hints are lost: the workers find their rows by themselves."""
    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: None)
    monkeypatch.setattr(hints, "seen", lambda kind, public_id: None)


def run_workers(work: Callable[[random.Random], None], meanwhile: Callable[[], None]) -> list[BaseException]:
    """``work`` over and over in eight threads until ``meanwhile`` has ended; what went wrong but the planned faults."""
    over = threading.Event()
    wrong: list[BaseException] = []

    def worker(number: int) -> None:
        chance = random.Random(number)
        try:
            while not over.is_set() and not wrong:
                try:
                    work(chance)
                except (CrashError, KilledError):
                    pass
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            wrong.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        meanwhile()
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=60)
    close_old_connections()
    return wrong


def test_600_edits_by_8_workers_with_crashes_lose_nothing_and_hold_no_row_twice() -> None:
    organization = make_organization()
    cluster = make_cluster()
    spaces = []
    for number in range(6):
        project = make_project(organization, slug=f"p{number}")
        spaces.append(
            ProjectSpace.objects.create(cluster=cluster, project=project, namespace=project.namespace, request_id="0")
        )
    guard = threading.Lock()
    holding: Counter[str] = Counter()
    twice: list[str] = []
    world: dict[str, tuple[int, str]] = {}
    chance = random.Random(1)

    def act(view: CounterView, at: datetime) -> Outcome:
        with guard:
            holding[view.public_id] += 1
            if holding[view.public_id] > 1:
                twice.append(view.public_id)
            luck = chance.random()
        try:
            if luck < 0.1:
                raise CrashError
            if luck < 0.2:
                return Retry(error="planned", after=timedelta(0))
            with guard:
                world[view.public_id] = (view.generation, view.wanted)
            return Settled()
        finally:
            with guard:
                holding[view.public_id] -= 1

    loop = CounterLoop(act=act)
    edits = Counter[str]()

    def edit_all() -> None:
        picks = random.Random(2)
        for number in range(600):
            space = picks.choice(spaces)
            with transaction.atomic(), unscoped("test"):
                row = ProjectSpace.objects.select_for_update().get(pk=space.pk)
                generation_raise(row, request_id=str(number))
            edits[space.public_id] = number

    ids = [space.public_id for space in spaces]
    wrong = run_workers(lambda luck: void(run_pass(loop, luck.choice(ids))), edit_all)
    assert wrong == []
    assert twice == []
    finish(loop, ids)
    with unscoped("test"):
        for row in ProjectSpace.objects.all():
            assert row.request_id == str(edits[row.public_id])
            assert world[row.public_id] == (row.generation, row.request_id)
            assert row.observed_generation == row.generation
            assert row.set_aside_reason == ""


def test_stalled_killed_and_crashing_workers_never_bring_back_an_older_generation(cast: Cast, settings: Any) -> None:
    """Leases of 20 ms, and stalls longer than that: workers overlap all the time, so only the fence holds."""
    settings.LEASE_SECONDS = 0.02
    grant = make_grant(cast.project, make_profile(), devices=0)
    with transaction.atomic():
        space = space_ensure(actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential="chaos"))
    fake = FakeCluster()
    chance = random.Random(3)
    guard = threading.Lock()
    pause = threading.Event()

    def stall(about: object) -> None:
        with guard:
            luck = chance.random()
        if luck < 0.3:
            pause.wait(luck / 5)
        elif luck < 0.33:
            raise CrashError
        elif luck < 0.36:
            raise KilledError

    fake.before = {"get": stall, "apply": stall}
    edits = 60

    def edit_all() -> None:
        for number in range(1, edits + 1):
            with transaction.atomic(), unscoped("test"):
                Grant.objects.filter(pk=grant.pk).update(devices=number)
                space_touch(project=cast.project)
            pause.wait(0.05)

    with placed("chaos", fake):
        wrong = run_workers(lambda luck: void(run_pass(RECONCILER, space.public_id)), edit_all)
        assert wrong == []
        fake.before = {}
        settings.LEASE_SECONDS = 60
        finish(RECONCILER, [space.public_id])
    stamps = [
        (generation_of(item), item["spec"]["hard"]["requests.nvidia.com/gpu"])
        for _, kind, item in fake._log
        if item["kind"] == "ResourceQuota" and kind != "DELETED"
    ]
    generations = [generation for generation, _ in stamps]
    assert generations == sorted(generations), "an older generation came after a later one"  # type: ignore[type-var]
    assert len(generations) > 5, "too little happened to prove anything"
    assert stamps[-1] == (edits + 1, str(edits))
    with unscoped("test"):
        row = ProjectSpace.objects.get(pk=space.pk)
    assert row.observed_generation == row.generation == edits + 1


def test_two_beats_and_lost_hints_still_converge_once(cast: Cast) -> None:
    """C31: sweeps run twice, every hint is lost; the rows are found all the same, and nothing is made twice."""
    with transaction.atomic():
        space_ensure(actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential="chaos"))
    fake = FakeCluster()
    with placed("chaos", fake):
        assert (sweep(RECONCILER), sweep(RECONCILER)) == (1, 1)
        assert run_pass(RECONCILER) is not None
        assert run_pass(RECONCILER) is None
        assert (sweep(RECONCILER), sweep(RECONCILER)) == (0, 0)
    assert len([call for call in fake.calls if call[0] == "apply"]) == 7


def void(_: object) -> None:
    """For lambdas whose answer nobody needs."""


def finish(loop: Any, ids: list[str]) -> None:
    """What the sweep would do in time: leases of the dead end, crashed rows come back, each row gets its pass."""
    with unscoped("test"):
        ProjectSpace.objects.filter(public_id__in=ids).update(
            lease_until=now() - timedelta(seconds=1), crashes=0, set_aside_reason=""
        )
    for _ in range(30):
        with unscoped("test"):
            behind = [
                row.public_id
                for row in ProjectSpace.objects.filter(public_id__in=ids)
                if row.observed_generation != row.generation
            ]
        if not behind:
            return
        for public_id in behind:
            try:
                run_pass(loop, public_id)
            except CrashError:
                continue
    raise AssertionError(f"still behind: {behind}")
