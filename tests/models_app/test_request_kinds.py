"""The main job's first half: ask, preview, decide, and take back, with the rows they leave."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.models import Cluster, GpuProfile, Grant, Node, ProjectSpace, QuotaHold
from models_app.models import Deployment, Revision
from portal.approvals.domain.previews import CheckVerdict, Preview
from portal.approvals.domain.states import RequestState
from portal.approvals.models import Request
from portal.approvals.selectors.requests import request_preview
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_revoke, request_submit
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import Conflict, InvalidInput, QuotaExceeded
from portal.tenancy.models import unscoped
from tests.cast import Cast, make_cell, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db

Act = Callable[[str], Actor]


@pytest.fixture
def profile(db: None) -> GpuProfile:
    profile = make_profile("h100")
    make_cell(profile, backend="vllm", model_format="gguf", support="unsupported", reason="not built for it")
    return profile


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster("local")


@pytest.fixture
def grant(cast: Cast, profile: GpuProfile) -> Grant:
    return make_grant(cast.project, profile, devices=8)


@pytest.fixture
def world(cluster: Cluster, grant: Grant) -> None:
    """A project with a grant of eight H100s, on the only cluster."""


def ask(**changes: Any) -> dict[str, Any]:
    return {"name": "chat", "profile": "h100", "source": "hf://acme/tiny", "source_file": "tiny.gguf", **changes}


def node(cluster: Cluster, devices: int) -> Node:
    return Node.objects.create(
        cluster=cluster,
        uid=f"n{devices}",
        name=f"n{devices}",
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        capacity={"nvidia.com/gpu": str(devices)},
        allocatable={"nvidia.com/gpu": str(devices)},
        ready=True,
        resource_version="1",
        observed_at=datetime(2026, 11, 1, tzinfo=UTC),
    )


def submit(cast: Cast, act: Act, **changes: Any) -> Request:
    return request_submit(actor=act("member"), kind="deployment", project=cast.project, payload=ask(**changes))


def looked(cast: Cast, act: Act, **changes: Any) -> dict[str, tuple[CheckVerdict, str]]:
    preview: Preview = request_preview(actor=act("member"), kind="deployment", project=cast.project, payload=ask(**changes))
    return {check.name: (check.verdict, check.text) for check in preview.checks}


def only_deployment() -> Deployment:
    with unscoped("test"):
        return Deployment.objects.select_related("project").get()


def test_the_preview_answers_every_question_apart(cast: Cast, act: Act, world: None, cluster: Cluster) -> None:
    node(cluster, 8)
    checks = looked(cast, act, devices_per_replica=2, replicas_max=3, vram="100Gi")
    assert {name: verdict for name, (verdict, _) in checks.items()} == dict.fromkeys(
        ("name", "compatibility", "devices", "vram", "grant", "capacity"), CheckVerdict.OK
    )
    preview = request_preview(actor=act("member"), kind="deployment", project=cast.project, payload=ask(replicas_max=2))
    assert preview.devices == 2
    assert dict(preview.facts)["Cost a month"] == "unknown: no rate set"
    assert dict(preview.facts)["GPU-hours a month"] == "730 to 1,460 GPU-hours"
    assert dict(preview.facts)["Devices free in the fleet now"] == "8"


def test_what_is_not_known_is_said_and_never_called_a_fit(cast: Cast, act: Act, world: None) -> None:
    checks = looked(cast, act)
    assert {name for name, (verdict, _) in checks.items() if verdict is CheckVerdict.UNKNOWN} == {
        "devices",
        "vram",
        "capacity",
    }


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"devices_per_replica": 9}, "devices_per_replica", "largest that fits is 8"),
        ({"backend": "vllm", "model_format": "gguf"}, "backend", "not built for it"),
        ({"vram": "81Gi"}, "vram", "missing"),
        ({"replicas_max": 9}, "replicas_max", "whole grant"),
        ({"profile": "h200"}, "profile", "there are: h100"),
        ({"cluster": "elsewhere"}, "cluster", "there are: local"),
        ({"image": "nginx:1"}, "image", "digest"),
        ({"memory": "1KB"}, "memory", "quantity"),
        ({"name": "acme/Llama-3.2-3B"}, "name", "acme-llama-3-2-3b"),
        ({"engine": "kserve"}, "engine", "plain"),
        ({"source_file": ""}, "source_file", "GGUF"),
    ],
)
def test_what_can_never_run_is_refused_at_once(
    cast: Cast, act: Act, world: None, cluster: Cluster, changes: dict[str, Any], field: str, words: str
) -> None:
    node(cluster, 8)
    with pytest.raises(InvalidInput) as refusal:
        submit(cast, act, **changes)
    assert words in " ".join(refusal.value.fields[field])
    with unscoped("test"):
        assert not Request.objects.exists()


def test_approval_declares_and_holds_in_one_act(cast: Cast, act: Act, world: None, profile: GpuProfile) -> None:
    request = submit(cast, act, replicas_max=3, devices_per_replica=2, context_length=8192)
    decided = request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    row = only_deployment()
    assert decided.state == RequestState.APPROVED
    assert (decided.made_kind, decided.made_id) == ("deployment", row.public_id)
    assert (row.approval_id, row.replicas_max, row.devices_per_replica) == (request.public_id, 3, 2)
    assert row.object_name.startswith("chat-")
    with unscoped("test"):
        assert QuotaHold.objects.get().devices == 6
        revision = Revision.objects.get()
    assert revision.image == profile.cells.get(backend="llamacpp").image
    assert revision.configuration["context_length"] == 8192
    assert revision.profile_snapshot["resource_name"] == "nvidia.com/gpu"
    assert revision.created_by == cast.member


def test_no_quota_left_means_no_approval_and_no_row(
    cast: Cast, act: Act, world: None, grant: Grant, cluster: Cluster
) -> None:
    request = submit(cast, act, replicas_max=4)
    make_deployment(grant, cluster, author=cast.member, name="other", replicas_max=5)
    with pytest.raises(QuotaExceeded, match="3 are free"):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    with unscoped("test"):
        assert Request.objects.get().state == RequestState.SUBMITTED
        assert list(Deployment.objects.values_list("name", flat=True)) == ["other"]


def test_two_requests_for_one_name_make_one_deployment(cast: Cast, act: Act, world: None) -> None:
    first, second = submit(cast, act), submit(cast, act)
    request_decide(actor=act("lead"), public_id=first.public_id, verdict="approve")
    with pytest.raises(Conflict, match="taken"):
        request_decide(actor=act("lead"), public_id=second.public_id, verdict="approve")
    with unscoped("test"):
        assert Deployment.objects.count() == 1
        assert QuotaHold.objects.count() == 1


def test_c21_a_name_still_deleting_is_asked_for_and_waits_with_what_holds_it(
    cast: Cast, act: Act, grant: Grant, cluster: Cluster
) -> None:
    observed = {"workload": {"present": True, "finalizers": ["flexinfer.ai/model-cleanup"], "deleting_since": "x"}}
    old = make_deployment(grant, cluster, author=cast.member, name="chat", desired="absent", observed=observed)
    verdict, text = looked(cast, act)["name"]
    assert verdict is CheckVerdict.WARN
    assert "still deleting, held by flexinfer.ai/model-cleanup" in text
    request = submit(cast, act)
    with pytest.raises(Conflict, match=r"held by flexinfer\.ai/model-cleanup"):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    with unscoped("test"):
        Deployment.objects.filter(pk=old.pk).update(archived_at=now())
    request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    with unscoped("test"):
        assert Deployment.objects.filter(name="chat", archived_at=None).count() == 1


def test_a_name_that_stands_is_refused_when_it_is_asked_for(cast: Cast, act: Act, grant: Grant, cluster: Cluster) -> None:
    make_deployment(grant, cluster, author=cast.member, name="chat")
    with pytest.raises(InvalidInput) as refusal:
        submit(cast, act)
    assert "taken" in refusal.value.fields["name"][0]


@pytest.mark.parametrize("phase", ["declared", "loading", "ready", "failed", "unknown"])
def test_c37_taking_an_approval_back_stops_the_deployment_whatever_its_state(
    cast: Cast, act: Act, world: None, phase: str
) -> None:
    request = submit(cast, act)
    request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    row = only_deployment()
    with unscoped("test"):
        Deployment.objects.filter(pk=row.pk).update(phase=phase)
    request_revoke(actor=act("lead"), public_id=request.public_id, reason="over")
    assert only_deployment().desired == "absent"


def test_a_matrix_that_changed_since_blocks_the_approval(cast: Cast, act: Act, world: None, profile: GpuProfile) -> None:
    request = submit(cast, act)
    profile.cells.filter(backend="llamacpp").update(support="unsupported")
    with pytest.raises(Conflict, match="matrix changed"):
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")


def test_approval_asks_for_the_projects_space_on_that_cluster(cast: Cast, act: Act, world: None, cluster: Cluster) -> None:
    for name in ("one", "two"):
        request = submit(cast, act, name=name)
        request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
    with unscoped("test"):
        space = ProjectSpace.objects.get()
    assert (space.cluster, space.namespace, space.desired) == (cluster, cast.project.namespace, "present")
