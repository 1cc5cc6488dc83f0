"""Deployments through a misbehaving API server: after each fault the cluster and the rows agree again without a hand.

The faults are put before the real API server (tests/cluster_faults.py); nothing is lost, doubled, or taken as gone (D3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deploy.local.controlplane import ControlPlane
from portal.approvals.domain.states import RequestState
from portal.work.loop import Verdict
from tests.cluster import eventually
from tests.cluster_faults import FaultyApi
from tests.models_app.reconcile.conftest import MakeScene, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.django_db]

REFUSALS: dict[str, dict[str, Any]] = {
    "403": {"status": 403},
    "409": {"status": 409},
    "410": {"status": 410},
    "429": {"status": 429, "retry_after": 1},
    "500": {"status": 500},
    "503": {"status": 503},
    "request lost": {"drop": True},
    "answer lost": {"lose": True},
    "slow": {"delay": 0.7},
}


def faults(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fault", [REFUSALS[name] for name in names], ids=names)


def assert_whole(scene: Scene) -> None:
    """One Deployment with one ReplicaSet, one Service, one hold, one fulfilled request."""
    assert len(scene.api.items("apps/v1", "Deployment", scene.namespace)) == 1
    assert len(scene.api.items("apps/v1", "ReplicaSet", scene.namespace)) == 1
    assert len(scene.api.items("v1", "Service", scene.namespace)) == 1
    assert [item.kind for item in scene.objects()] == ["Deployment", "Service"]
    assert scene.held() == 1
    assert scene.request().state == RequestState.FULFILLED


def archived(scene: Scene) -> Callable[[], bool]:
    def look() -> bool:
        scene.pass_once()
        return scene.row().archived_at is not None

    return look


@faults(*REFUSALS)
def test_an_apply_that_fails_is_made_again_and_nothing_is_made_twice(
    make_scene: MakeScene, faulty_api: FaultyApi, fault: dict[str, Any]
) -> None:
    scene = make_scene()
    on_deployment = faulty_api.add("^PATCH .*/deployments/", times=2, **fault)
    on_service = faulty_api.add("^PATCH .*/services/", times=1, **fault)
    scene.until("ready")
    assert on_deployment.hits >= 1
    assert on_service.hits == 1
    assert_whole(scene)


@faults("403", "410", "429", "503", "request lost", "slow")
def test_a_read_that_fails_changes_nothing_and_ends_nothing(
    make_scene: MakeScene, faulty_api: FaultyApi, fault: dict[str, Any]
) -> None:
    scene = make_scene()
    before = scene.until("ready")
    pods = {pod["metadata"]["uid"] for pod in scene.pods()}
    fault_on_reads = faulty_api.add("^GET ", times=None, **fault)
    for _ in range(2):
        report = scene.pass_once()
        assert report is not None
        assert report.verdict in {Verdict.RETRY, Verdict.BLOCKED, Verdict.SETTLED}
    assert fault_on_reads.hits
    assert not faulty_api.requests("^DELETE ")
    assert scene.row().archived_at is None
    faulty_api.clear()
    after = scene.until("ready")
    assert after.generation == before.generation
    assert {pod["metadata"]["uid"] for pod in scene.pods()} == pods
    assert_whole(scene)


@faults("403", "409", "request lost", "answer lost")
def test_a_deletion_that_fails_is_asked_again_until_it_is_done(
    make_scene: MakeScene, faulty_api: FaultyApi, fault: dict[str, Any]
) -> None:
    scene = make_scene()
    scene.until("ready")
    on_delete = faulty_api.add("^DELETE .*/deployments/", times=2, **fault)
    scene.change(desired="absent")
    eventually(archived(scene), within=60, what="archived")
    assert on_delete.hits >= 1
    assert scene.held() == -1
    assert scene.pods() == []
    assert scene.live() is None
    assert scene.live("Service") is None


def test_an_api_server_that_is_down_ends_no_hold_and_is_caught_up_with(
    make_scene: MakeScene, control_plane: ControlPlane
) -> None:
    scene = make_scene()
    scene.until("ready")
    control_plane.kill_apiserver()
    scene.change(desired="absent")
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.RETRY
    row = scene.row()
    assert (row.archived_at, scene.held()) == (None, 1)
    assert row.last_error
    control_plane.mend()
    eventually(archived(scene), within=60, what="archived")
    assert scene.held() == -1
    assert scene.pods() == []


def test_what_was_approved_while_the_api_server_was_down_comes_up_after(
    make_scene: MakeScene, control_plane: ControlPlane
) -> None:
    scene = make_scene()
    control_plane.kill_apiserver()
    for _ in range(2):
        report = scene.pass_once()
        assert report is not None
        assert report.verdict is Verdict.RETRY
    assert scene.request().state == RequestState.APPROVED
    assert scene.held() == 1
    control_plane.mend()
    scene.until("ready")
    assert_whole(scene)
