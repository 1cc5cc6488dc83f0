"""The deployment loop on the real control plane, with real engines behind its pods."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from fleet.domain.stamps import generation_of, owner_of
from models_app.domain.replicas import replica_owners
from models_app.reconcile.deployments import RECONCILER
from portal.approvals.domain.states import RequestState
from portal.audit.models import AuditEvent
from portal.work.loop import Verdict
from tests.cluster import eventually
from tests.models_app.engines.specs import image_of
from tests.models_app.reconcile.conftest import MakeScene, Scene

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]


def ready_engine(scene: Scene) -> str:
    """The address of the only ready pod."""
    [pod] = [pod for pod in scene.row().observed["pods"] if pod["ready"]]
    return f"http://{pod['ip']}:{pod['port']}"


def test_a_declared_row_becomes_a_ready_model(make_scene: MakeScene) -> None:
    scene = make_scene()
    row = scene.until("ready")
    assert httpx.get(f"{ready_engine(scene)}/health").status_code == 200
    assert [item.kind for item in scene.objects()] == ["Deployment", "Service"]
    live = scene.live()
    assert live is not None
    assert generation_of(live) == row.generation
    owner = owner_of(live)
    assert owner is not None
    assert (owner.kind, owner.id) == ("deployment", row.public_id)
    assert live["metadata"]["annotations"]["slipway/request-id"] == "click-1"
    assert {item["type"]: item["status"] for item in row.conditions} == {"Synced": "True", "Ready": "True"}
    assert scene.request().state == RequestState.FULFILLED
    timeline = scene.timeline()
    assert timeline[-1] == "ready"
    assert "loading" in timeline
    applied = AuditEvent.objects.get(action="deployment.apply", object_id=row.public_id)
    assert applied.request_id == "click-1"
    assert applied.after["objects"] == [
        f"Deployment {scene.namespace}/{scene.name}",
        f"Service {scene.namespace}/{scene.name}",
    ]
    assert scene.held() == 1


def test_a_second_pass_over_a_ready_model_changes_nothing(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    before, timeline = scene.live(), scene.timeline()
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.SETTLED
    after = scene.live()
    assert before is not None
    assert after is not None
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert scene.timeline() == timeline


def test_c28_what_the_server_writes_differently_is_no_drift(make_scene: MakeScene) -> None:
    scene = make_scene()
    configuration = {"source_file": "tiny.gguf", "cpu": "0.5", "memory": "1000M"}
    scene.revise(configuration=configuration)
    scene.until("ready")
    before = scene.live()
    assert before is not None
    requests = before["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert (requests["cpu"], requests["memory"]) == ("500m", "1G")
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.SETTLED
    after = scene.live()
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_hand_that_changed_the_object_is_shown_with_field_and_owner(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    template = {"spec": {"containers": [{"name": "server", "image": "registry.invalid/other@sha256:" + "1" * 64}]}}
    scene.api.patch(scene.path(), {"spec": {"template": template, "minReadySeconds": 1}})
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.BLOCKED
    row = scene.row()
    assert row.phase_reason == "FieldConflict"
    assert ".spec.template.spec.containers" in row.phase_message
    assert "owned by" in row.phase_message
    live = scene.live()
    assert live is not None
    assert live["spec"]["template"]["spec"]["containers"][0]["image"].endswith("1" * 64)


def test_a_deleted_service_comes_back(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    scene.api.delete(scene.path("Service"))
    scene.pass_once()
    assert scene.live("Service") is not None
    [gone] = scene.objects(gone=True)
    assert gone.kind == "Service"
    assert [item.kind for item in scene.objects()] == ["Deployment", "Service"]


def test_an_object_of_somebody_else_is_never_adopted(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.api.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": scene.name, "namespace": scene.namespace},
            "spec": {"ports": [{"port": 80}]},
        }
    )
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.BLOCKED
    assert scene.row().phase_reason == "ForeignObject"
    assert scene.live() is None
    live = scene.live("Service")
    assert live is not None
    assert "slipway/managed" not in (live["metadata"].get("labels") or {})


def test_c20_replicas_stay_the_autoscalers_when_a_new_image_is_applied(make_scene: MakeScene) -> None:
    scene = make_scene(replicas_min=1, replicas_max=3)
    scene.until("ready")
    scene.api.patch(f"{scene.path()}/scale", {"spec": {"replicas": 3}})
    before = scene.live()
    assert before is not None
    assert "slipway" not in replica_owners(before)
    scene.revise(image=image_of("llamacpp-rocm"))
    scene.pass_once()
    live = scene.live()
    assert live is not None
    assert live["spec"]["replicas"] == 3
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == image_of("llamacpp-rocm")
    assert "slipway" not in replica_owners(live)


def test_c20_hand_over_to_the_autoscaler_and_taking_back_never_reset_the_count(make_scene: MakeScene) -> None:
    scene = make_scene(replicas_min=2, replicas_max=2)
    scene.until("ready")
    scene.change(replicas_min=1, replicas_max=4)
    for _ in range(2):
        scene.pass_once()
        live = scene.live()
        assert live is not None
        assert live["spec"]["replicas"] == 2
    assert scene.live("HorizontalPodAutoscaler") is not None
    scene.change(replicas_min=3, replicas_max=4)

    def scaled() -> bool:
        scene.pass_once()
        now_live = scene.live()
        return now_live is not None and now_live["spec"]["replicas"] == 3

    eventually(scaled, within=60, what="the autoscaler raised the count to its minimum")
    scene.pass_once()
    live = scene.live()
    assert live is not None
    assert "slipway" not in replica_owners(live)
    scene.change(replicas_min=2, replicas_max=2)
    scene.pass_once()
    live = scene.live()
    assert live is not None
    assert live["spec"]["replicas"] == 2
    assert replica_owners(live) == {"slipway"}
    assert scene.live("HorizontalPodAutoscaler") is None


def test_c20_a_real_conflict_on_replicas_is_shown_and_not_forced(make_scene: MakeScene) -> None:
    scene = make_scene(replicas_min=1, replicas_max=1)
    scene.until("ready")
    scene.api.patch(f"{scene.path()}/scale", {"spec": {"replicas": 2}})
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.BLOCKED
    assert ".spec.replicas" in scene.row().phase_message
    live = scene.live()
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_c22_a_new_image_on_a_full_node_does_not_deadlock(make_scene: MakeScene) -> None:
    scene = make_scene(devices_per_replica=8)
    scene.until("ready")
    [old] = scene.pods()
    scene.revise(image=image_of("llamacpp-cuda-2"))

    def replaced() -> bool:
        scene.pass_once()
        names = {pod["metadata"]["name"] for pod in scene.pods()}
        return scene.row().phase == "ready" and old["metadata"]["name"] not in names

    eventually(replaced, within=60, what="the new pod took the old one's cards")
    assert scene.held() == 8


def test_deleting_waits_for_the_pod_then_ends_the_hold_and_archives(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    scene.change(desired="absent")
    scene.pass_once()
    assert scene.row().phase == "deleting"
    assert scene.held() == 1

    def archived() -> bool:
        scene.pass_once()
        return scene.row().archived_at is not None

    eventually(archived, within=60, what="archived")
    assert scene.held() == -1
    assert scene.pods() == []
    assert scene.live() is None
    assert scene.live("Service") is None
    assert scene.objects() == []
    assert scene.request().state == RequestState.FULFILLED


def test_c21_held_by_a_finalizer_frees_the_quota_once_the_pod_is_gone(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    scene.api.patch(scene.path(), {"metadata": {"finalizers": ["flexinfer.ai/model-cleanup"]}})
    scene.change(desired="absent")

    def freed() -> bool:
        scene.pass_once()
        return scene.held() == -1

    eventually(freed, within=60, what="the hold ended")
    row = scene.row()
    assert row.archived_at is None
    assert (row.phase, row.phase_reason) == ("deleting", "HeldByFinalizer")
    assert "held by flexinfer.ai/model-cleanup" in row.phase_message
    live = scene.live()
    assert live is not None
    assert "flexinfer.ai/model-cleanup" in live["metadata"]["finalizers"]
    scene.pass_once()
    scene.api.patch(scene.path(), {"metadata": {"finalizers": None}})
    eventually(lambda: scene.pass_once() and scene.row().archived_at, within=30, what="archived")


def test_deleted_before_it_was_ready_fails_the_request(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.change(desired="absent")
    scene.pass_once()
    assert scene.row().archived_at is not None
    assert scene.request().state == RequestState.FAILED
    assert scene.held() == -1


def test_no_room_on_any_node_says_so(make_scene: MakeScene) -> None:
    scene = make_scene(devices_per_replica=9)
    row = eventually(
        lambda: scene.pass_once() and (scene.row() if scene.row().phase_reason == "WaitingForCapacity" else None),
        what="the scheduler's word",
    )
    assert "nodes are available" in row.phase_message
    assert row.phase == "loading"
    assert row.next_attempt_at - row.observed_at <= timedelta(seconds=10)
    assert scene.request().state == RequestState.APPROVED
    assert any(event["reason"] == "FailedScheduling" for event in scene.row().observed["events"])


def test_scaled_to_zero_is_idle_and_keeps_its_hold(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.until("ready")
    scene.change(replicas_min=0, replicas_max=1)
    scene.until("idle")
    eventually(lambda: scene.pass_once() and not scene.pods(), within=30, what="no pod")
    assert scene.held() == 1
    scene.change(replicas_min=1)
    scene.until("ready")


def test_a_shrunk_ceiling_lowers_the_hold_when_the_pod_is_gone(make_scene: MakeScene) -> None:
    scene = make_scene(replicas_min=2, replicas_max=2, devices_per_replica=2)
    scene.until("ready")
    scene.change(replicas_min=1, replicas_max=1)
    scene.pass_once()
    assert scene.held() == 4
    eventually(lambda: scene.pass_once() and scene.held() == 2, within=60, what="the hold fell")
    assert scene.row().phase == "ready"


def test_an_engine_without_its_operator_waits_with_its_quota(make_scene: MakeScene) -> None:
    scene = make_scene(engine="flexinfer")
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.WAIT
    row = scene.row()
    assert row.phase == "admitted"
    assert row.phase_message == "FlexInfer operator not installed on cluster local."
    assert scene.held() == 1
    scene.change(desired="absent")
    scene.pass_once()
    assert scene.row().archived_at is not None


def test_a_model_is_applied_where_the_operator_is(make_scene: MakeScene, flexinfer_crd: object) -> None:
    scene = make_scene(engine="flexinfer")
    scene.pass_once()
    path = f"/apis/ai.flexinfer/v1alpha2/namespaces/{scene.namespace}/models/{scene.name}"
    live = scene.api.get(path)
    assert live is not None
    assert live["spec"]["imageDigest"] == image_of("llamacpp-cuda").partition("@")[2]
    assert scene.row().phase == "loading"
    version = live["metadata"]["resourceVersion"]
    scene.pass_once()
    again = scene.api.get(path)
    assert again is not None
    assert again["metadata"]["resourceVersion"] == version
    scene.change(desired="absent")
    scene.pass_once()
    scene.pass_once()
    assert scene.api.get(path) is None
    assert scene.row().archived_at is not None


def test_a_missing_namespace_is_waited_for(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.deployment.project.namespace = "sw-not-there-yet"
    scene.deployment.project.save(update_fields=["namespace"])
    report = scene.pass_once()
    assert report is not None
    assert report.verdict is Verdict.RETRY
    row = scene.row()
    assert row.phase == "admitted"
    assert "namespace" in row.phase_message
    assert RECONCILER.kind == "deployment"
