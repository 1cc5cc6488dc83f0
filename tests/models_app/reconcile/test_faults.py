"""The deployment loop before an API server that refuses, is silent, or loses its answers (contract D3)."""

from __future__ import annotations

from typing import Any

import pytest

from models_app.reconcile.deployments import RECONCILER
from portal.work.loop import Verdict, run_pass
from tests.cluster import eventually
from tests.models_app.reconcile.conftest import MakeScene, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.django_db]


@pytest.fixture
def scene(make_scene: MakeScene, faulty_api: Any) -> Scene:
    return make_scene()


def verdict(scene: Scene) -> Verdict:
    report = scene.pass_once()
    assert report is not None
    return report.verdict


def test_silence_makes_it_unknown_and_lets_go_of_nothing(scene: Scene, faulty_api: Any) -> None:
    scene.until("ready")
    seen = scene.row().observed
    faulty_api.add(".*", drop=True, times=None)
    assert verdict(scene) is Verdict.RETRY
    row = scene.row()
    assert (row.phase, row.phase_reason) == ("unknown", "ClusterUnreachable")
    assert row.observed == seen
    assert scene.held() == 1
    faulty_api.clear()
    scene.until("ready")
    assert scene.timeline()[-2:] == ["unknown", "ready"]


@pytest.mark.parametrize("status", [500, 503, 403, 429, 401])
def test_a_pod_list_that_fails_ends_no_hold(scene: Scene, faulty_api: Any, status: int) -> None:
    scene.until("ready")
    scene.change(desired="absent")
    faulty_api.add("GET .*/pods", status=status, times=None)
    assert verdict(scene) is Verdict.RETRY
    assert scene.held() == 1
    assert scene.row().archived_at is None
    faulty_api.clear()
    eventually(lambda: scene.pass_once() and scene.row().archived_at, within=60, what="archived")
    assert scene.held() == -1


def test_an_answer_that_was_lost_makes_no_second_object(scene: Scene, faulty_api: Any) -> None:
    faulty_api.add("PATCH .*/deployments/", lose=True)
    assert verdict(scene) is Verdict.RETRY
    first = scene.live()
    assert first is not None
    scene.until("ready")
    live = scene.live()
    assert live is not None
    assert live["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(scene.pods()) == 1
    assert [item.uid for item in scene.objects() if item.kind == "Deployment"] == [first["metadata"]["uid"]]


@pytest.mark.parametrize(("status", "reason"), [(429, "TooManyRequests"), (500, "InternalError"), (403, "Forbidden")])
def test_a_refused_apply_is_tried_again(scene: Scene, faulty_api: Any, status: int, reason: str) -> None:
    faulty_api.add("PATCH .*/deployments/", status=status, reason=reason)
    assert verdict(scene) is Verdict.RETRY
    row = scene.row()
    assert row.attempts == 1
    assert row.last_error
    assert scene.held() == 1
    scene.until("ready")
    assert scene.row().last_error == ""


def test_an_object_that_changes_under_the_pass_is_read_again_at_once(scene: Scene, faulty_api: Any) -> None:
    scene.until("ready")
    scene.change(replicas_min=0)
    faulty_api.add("PATCH .*/deployments/", status=409, reason="Conflict", times=2)
    scene.pass_once()
    live = scene.live()
    assert live is not None
    assert live["spec"]["replicas"] == 0


def test_a_stalled_pass_of_an_older_generation_changes_nothing(scene: Scene) -> None:
    """D4: the first pass was overtaken between its reading of the row and its apply."""
    scene.until("ready")
    with_old_row = RECONCILER.load(scene.deployment.pk)
    scene.change(replicas_min=0)
    scene.until("idle")
    outcome = RECONCILER.reconcile(with_old_row, scene.row().created_at)
    assert "later generation" in getattr(outcome, "error", "")
    live = scene.live()
    assert live is not None
    assert live["spec"]["replicas"] == 0


def test_a_deleted_name_comes_back_as_another_object(scene: Scene, make_scene: MakeScene) -> None:
    scene.until("ready")
    scene.change(desired="absent")
    eventually(lambda: scene.pass_once() and scene.row().archived_at, within=60, what="archived")
    again = make_scene(name=scene.deployment.name)
    assert again.name != scene.name
    again.until("ready")
    assert run_pass(RECONCILER, scene.deployment.public_id) is not None
    assert again.live() is not None


def test_an_object_that_a_stalled_pass_made_after_the_end_is_removed(scene: Scene) -> None:
    """A lease fences no cluster: the worker slept from its reading of the row until the row was archived."""
    stalled = RECONCILER.load(scene.deployment.pk)
    scene.change(desired="absent")
    scene.pass_once()
    assert scene.row().archived_at is not None
    RECONCILER.reconcile(stalled, scene.row().created_at)
    assert scene.live() is not None
    eventually(lambda: scene.pass_once() and scene.live() is None and not scene.pods(), within=60, what="removed again")
    assert scene.live("Service") is None
    assert scene.held() == -1
    assert scene.row().archived_at is not None


def test_a_pod_whose_label_was_taken_off_still_holds_its_devices(scene: Scene) -> None:
    scene.until("ready")
    [pod] = scene.pods()
    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
    owners = pod["metadata"]["ownerReferences"]
    scene.api.patch(path, {"metadata": {"labels": {"slipway/id": None}, "ownerReferences": None}})
    assert owners
    scene.change(desired="absent")
    scene.pass_once()
    eventually(lambda: scene.pass_once() and scene.live() is None, within=60, what="the Deployment is gone")
    scene.pass_once()
    assert scene.held() == 1
    assert scene.row().archived_at is None
    scene.api.delete(path, grace=0)
    eventually(lambda: scene.pass_once() and scene.row().archived_at, within=60, what="archived")
    assert scene.held() == -1


def test_a_bad_revision_of_an_idle_deployment_does_not_take_it_away(make_scene: MakeScene, faulty_api: Any) -> None:
    scene = make_scene(replicas_min=0, replicas_max=1)
    scene.until("idle")
    faulty_api.add("PATCH .*/deployments/", status=422, reason="Invalid")
    scene.revise(configuration={"arguments": ["--nonsense"]})
    assert verdict(scene) is Verdict.BLOCKED
    assert scene.row().desired == "present"
    assert scene.live() is not None
    assert scene.held() == 1
