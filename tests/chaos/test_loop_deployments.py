"""Lease and fence together on the object that people care about: a deployment, on the real API server (D4).

A first worker stalls at a chosen call of its pass; its lease ends, the row changes, a second worker carries that through;
then the first one wakes with its older generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from fleet.cluster import connect, placed
from fleet.domain.stamps import generation_of
from models_app.models import Deployment
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.loop import Verdict
from tests.chaos.interrupted import Interrupted
from tests.cluster import eventually
from tests.models_app.reconcile.conftest import MakeScene, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.django_db]

POINTS = [("get", 1, False), ("get", 2, True), ("apply", 1, False), ("apply", 1, True), ("apply", 2, False)]
"""Every point is tried on the fake (test_loop_fence.py); here those where a read or a write hangs in the balance."""


def lease_ends(scene: Scene) -> None:
    with unscoped("test"):
        Deployment.objects.filter(pk=scene.deployment.pk).update(lease_until=now() - timedelta(seconds=1))


@contextmanager
def stalled(scene: Scene, method: str, number: int, after: bool, meanwhile: Callable[[], None]) -> Iterator[Interrupted]:
    port = connect("local")

    def moment() -> None:
        lease_ends(scene)
        meanwhile()
        with placed("local", port):
            report = scene.pass_once()
        assert report is not None
        assert report.verdict not in {Verdict.BUSY, Verdict.LOST_LEASE}

    slow = Interrupted(port, method, number, moment, after=after)
    with placed("local", slow):  # type: ignore[arg-type]
        yield slow


def scale(scene: Scene, replicas: int) -> None:
    scene.change(replicas_min=replicas, replicas_max=replicas)


def check_newest(scene: Scene, replicas: int) -> None:
    """At once, and after the pass that the lost lease asked for."""
    for _ in range(2):
        live = scene.live()
        assert live is not None
        assert (live["spec"]["replicas"], generation_of(live)) == (replicas, scene.row().generation), "the older one won"
        scene.pass_once()
    assert scene.row().observed_generation == scene.row().generation
    assert len(scene.api.items("apps/v1", "Deployment", scene.namespace)) == 1


@pytest.mark.parametrize(("method", "number", "after"), POINTS)
def test_a_stale_worker_does_not_win_while_it_is_made(make_scene: MakeScene, method: str, number: int, after: bool) -> None:
    scene = make_scene()
    with stalled(scene, method, number, after, lambda: scale(scene, 2)) as slow:
        report = scene.pass_once()
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    check_newest(scene, 2)


@pytest.mark.parametrize(("method", "number", "after"), POINTS)
def test_a_stale_worker_does_not_win_over_a_later_change(
    make_scene: MakeScene, method: str, number: int, after: bool
) -> None:
    scene = make_scene()
    scene.pass_once()
    scale(scene, 2)
    with stalled(scene, method, number, after, lambda: scale(scene, 3)) as slow:
        report = scene.pass_once()
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    check_newest(scene, 3)


@pytest.mark.parametrize(("method", "number"), [("get", 1), ("apply", 1)])
def test_a_stale_worker_does_not_win_when_a_change_was_taken_back(make_scene: MakeScene, method: str, number: int) -> None:
    scene = make_scene()
    scene.pass_once()
    scale(scene, 2)
    with stalled(scene, method, number, False, lambda: scale(scene, 1)) as slow:
        scene.pass_once()
    assert slow.happened
    check_newest(scene, 1)


@pytest.mark.parametrize(("method", "number", "after"), [("get", 1, False), ("apply", 1, False), ("apply", 2, True)])
def test_a_stale_worker_that_made_something_of_a_removed_deployment_is_cleaned_up_after(
    make_scene: MakeScene, monkeypatch: pytest.MonkeyPatch, method: str, number: int, after: bool
) -> None:
    scene = make_scene()
    asked: list[tuple[str, str]] = []

    def removed() -> None:
        scene.change(desired="absent")
        asked.clear()

    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: asked.append((kind, public_id)))
    with stalled(scene, method, number, after, removed) as slow:
        report = scene.pass_once()
    assert slow.happened
    assert report is not None
    assert report.verdict == Verdict.LOST_LEASE
    assert ("deployment", scene.deployment.public_id) in asked

    def over() -> bool:
        scene.pass_once()
        return scene.row().archived_at is not None and scene.live() is None and scene.live("Service") is None

    eventually(over, within=30, what="the late object is removed and the row archived")
