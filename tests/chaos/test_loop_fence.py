"""Lease and fence together: a worker that stalled past its lease wakes with an older generation, and must not win (D4).

At every call of its pass a first worker is stalled; meanwhile its lease ends and a second one carries a later generation
through. On the fake, for every point, and on the real API server.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from fleet.cluster import ClusterPort, ObjectRef, connect, placed
from fleet.domain.stamps import generation_of
from fleet.models import Grant, ProjectSpace
from fleet.reconcile.spaces import RECONCILER
from fleet.services.parts.spaces import space_ensure, space_touch, spaces_end_with_project
from portal.kernel.clock import FrozenClock, frozen
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.loop import Verdict, run_pass, settle
from tests.cast import Cast, actor_of, make_cluster, make_grant, make_profile
from tests.chaos.interrupted import Interrupted
from tests.fleet.cluster.fake import FakeCluster

pytestmark = [pytest.mark.chaos, pytest.mark.django_db]
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
OBJECTS = 7
"""Of a space: as many reads and as many first applies."""


class Scene:
    """One project with a grant and a space on ``port``."""

    def __init__(self, cast: Cast, clock: FrozenClock, port: ClusterPort) -> None:
        self.cast, self.clock, self.port = cast, clock, port
        # A namespace of the scene's own: on the real cluster the one of the test before may still be ending.
        cast.project.namespace = f"sw-scene-{secrets.token_hex(4)}"
        cast.project.save(update_fields=["namespace"])
        self.grant = make_grant(cast.project, make_profile(), devices=1)
        with transaction.atomic():
            self.space = space_ensure(
                actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential="scene")
            )

    def edit(self, devices: int) -> None:
        with unscoped("test"):
            Grant.objects.filter(pk=self.grant.pk).update(devices=devices)
        with transaction.atomic():
            space_touch(project=self.cast.project)

    def end(self) -> None:
        with transaction.atomic():
            spaces_end_with_project(actor=actor_of(self.cast.lead), project=self.cast.project)

    def row(self) -> ProjectSpace:
        with unscoped("test"):
            return ProjectSpace.objects.get(pk=self.space.pk)

    def fence(self) -> tuple[str, int | None] | None:
        """Devices and generation in the cluster."""
        live = self.port.get(ObjectRef("v1", "ResourceQuota", self.cast.project.namespace, "slipway-fence"))
        return None if live is None else (live["spec"]["hard"]["requests.nvidia.com/gpu"], generation_of(live))

    def outlive_lease(self) -> None:
        self.clock.advance(timedelta(seconds=settings.LEASE_SECONDS + 1))

    @contextmanager
    def stalled(self, method: str, number: int, meanwhile: Any, *, after: bool = False) -> Iterator[Interrupted]:
        """The next pass stalls at that call, past its lease, while ``meanwhile`` and another worker's pass happen."""

        def moment() -> None:
            self.outlive_lease()
            meanwhile()
            with placed("scene", self.port):
                report = run_pass(RECONCILER, self.space.public_id)
            assert report is not None
            assert report.verdict != Verdict.BUSY

        slow = Interrupted(self.port, method, number, moment, after=after)
        with placed("scene", slow):  # type: ignore[arg-type]
            yield slow


@pytest.fixture
def clock() -> Iterator[FrozenClock]:
    with frozen(NOON) as clock:
        yield clock


@pytest.fixture
def scene(request: pytest.FixtureRequest, db: None, cast: Cast, clock: FrozenClock) -> Scene:
    if request.param == "fake":
        return Scene(cast, clock, FakeCluster())
    return Scene(cast, clock, connect(request.getfixturevalue("cluster_credential")))


def check_newest(scene: Scene, devices: str) -> None:
    generation = scene.row().generation
    assert scene.fence() == (devices, generation), "the older generation won"
    with placed("scene", scene.port):
        settle(RECONCILER)
    assert scene.fence() == (devices, generation)
    assert scene.row().observed_generation == generation


def points(fake: list[tuple[str, int]], real: list[tuple[str, int]]) -> list[Any]:
    """(scene, method, number, after): every point on the fake, some of them on the real API server."""
    return [
        pytest.param(where, method, number, after, marks=[pytest.mark.cluster] if where == "real" else [])
        for where, chosen in (("fake", fake), ("real", real))
        for method, number in chosen
        for after in ((False, True) if where == "fake" else (False,))
    ]


_ARGUMENTS = ("scene", "method", "number", "after")
_READS = [("get", number) for number in range(1, OBJECTS + 1)]
_WRITES = [("apply", number) for number in range(1, OBJECTS + 1)]


@pytest.mark.parametrize(
    _ARGUMENTS,
    points(_READS + _WRITES, [("get", 1), ("get", 2), ("apply", 1), ("apply", 2), ("apply", 7)]),
    indirect=["scene"],
)
def test_a_stale_worker_does_not_win_while_the_space_is_made(scene: Scene, method: str, number: int, after: bool) -> None:
    with scene.stalled(method, number, lambda: scene.edit(5), after=after) as slow:
        report = run_pass(RECONCILER)
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    check_newest(scene, "5")


@pytest.mark.parametrize(
    _ARGUMENTS,
    points([*_READS, ("apply", 1)], [("get", 1), ("get", 2), ("get", 3), ("apply", 1)]),
    indirect=["scene"],
)
def test_a_stale_worker_does_not_win_over_a_later_change(scene: Scene, method: str, number: int, after: bool) -> None:
    with placed("scene", scene.port):
        settle(RECONCILER)
    scene.edit(3)
    with scene.stalled(method, number, lambda: scene.edit(5), after=after) as slow:
        report = run_pass(RECONCILER)
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    check_newest(scene, "5")


@pytest.mark.parametrize("scene", ["fake", pytest.param("real", marks=pytest.mark.cluster)], indirect=True)
def test_a_stale_worker_does_not_win_when_a_change_was_taken_back(scene: Scene) -> None:
    """Generation 3 says what generation 1 said, so nothing but its stamp tells generation 2 that it is late."""
    with placed("scene", scene.port):
        settle(RECONCILER)
    scene.edit(3)
    with scene.stalled("get", 2, lambda: scene.edit(1)) as slow:
        run_pass(RECONCILER)
    assert slow.happened
    check_newest(scene, "1")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("method", "number"), [("get", 1), ("apply", 1), ("apply", 2), ("apply", 7)])
def test_a_stale_worker_that_made_something_of_a_removed_space_is_cleaned_up_after(
    cast: Cast, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, method: str, number: int, after: bool
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: asked.append((kind, public_id)))
    fake = FakeCluster()
    scene = Scene(cast, clock, fake)

    def removed() -> None:
        scene.end()
        with placed("scene", fake):
            run_pass(RECONCILER, scene.space.public_id)
        clock.advance(timedelta(seconds=5))
        asked.clear()

    with scene.stalled(method, number, removed, after=after) as slow:
        report = run_pass(RECONCILER)
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    assert asked == [("space", scene.space.public_id)]
    with placed("scene", fake):
        for _ in range(3):
            run_pass(RECONCILER, scene.space.public_id)
    assert fake.objects() == []
    assert scene.row().archived_at is not None
