"""A laboratory in the middle of its day: nodes well and ill, deployments in every state, requests waiting and decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fleet.models import Cluster, CoverageGap, GpuInterval, Node, ObservedPod
from models_app.domain.sightings import EventSighting, PodSighting, Sighting, WorkloadSighting
from models_app.models import AppliedObject, Deployment, StateChange
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from portal.kernel.clock import now
from portal.tenancy.models import Project, unscoped
from routing.services.keys import key_create, key_revoke
from tests.cast import Cast, actor_of, make_cast, make_cluster, make_deployment, make_grant, make_profile

MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "llama-3-8b-chat", "namespace": "sw-acme-vision", "labels": {"slipway/managed": "true"}},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "server", "args": ["--port", "8080"]}]}}},
}


@dataclass(frozen=True, slots=True)
class Scene:
    cast: Cast
    ready: Deployment
    failing: Deployment
    waiting: str
    """The public id of an undecided request."""
    decided: str


def payload(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "profile": "h100-80gb",
        "source": f"hf://acme/{name}",
        "source_revision": "a" * 40,
        "source_file": f"{name}.gguf",
        "backend": "llamacpp",
        **changes,
    }


def make_scene() -> Scene:
    cast = make_cast()
    at = now()
    cluster = make_cluster("local", reachable=True, last_seen_at=at, kubernetes_version="v1.37.2")
    h100 = make_profile("h100-80gb", title="NVIDIA H100 80 GB")
    rx = make_profile(
        "rx-7900-xtx",
        title="AMD Radeon RX 7900 XTX 24 GB",
        vendor="amd",
        resource_name="amd.com/gpu",
        vram_bytes=24 * 2**30,
        node_selector={"amd.com/gpu.product-name": "AMD_Radeon_RX_7900_XTX"},
    )
    grant = make_grant(cast.project, h100, devices=8)
    make_grant(cast.project, rx, devices=1)
    _fleet(cluster)
    ready = make_deployment(
        grant, cluster, author=cast.member, name="llama-3-8b-chat", phase="ready", replicas_min=2, replicas_max=2
    )
    failing = make_deployment(
        grant,
        cluster,
        author=cast.member,
        name="mixtral-8x7b-instruct-with-quite-a-long-name",
        phase="failed",
        phase_reason="CrashLoopBackOff",
        phase_message="0 of 1 ready; pod mixtral-0 restarted 7 times, last OOMKilled (exit code 137).",
    )
    with unscoped("a scene"):
        _observe(ready, at)
        _observe_crash(failing, at)
        Deployment.objects.filter(pk=ready.pk).update(created_at=at - timedelta(days=3))
    for phase, name in (("loading", "whisper-large"), ("idle", "embed-small"), ("deleting", "old-chat")):
        make_deployment(grant, cluster, author=cast.member, name=name, phase=phase)
    member, lead = actor_of(cast.member), actor_of(cast.lead)
    waiting = request_submit(
        actor=member,
        kind="deployment",
        project=cast.project,
        payload=payload("qwen-2-5-coder", devices_per_replica=2),
        justification="Code review assistant for the robotics group; about 20 people, from Monday on.",
    )
    request_submit(actor=lead, kind="deployment", project=cast.project, payload=payload("leads-own"))
    request_submit(actor=member, kind="grant", project=cast.project, payload={"profile": "rx-7900-xtx", "devices": 2})
    decided = request_submit(actor=member, kind="deployment", project=cast.project, payload=payload("tiny-chat"))
    request_decide(actor=lead, public_id=decided.public_id, verdict="approve", reason="Fits, go ahead.")
    denied = request_submit(actor=member, kind="deployment", project=cast.project, payload=payload("too-much"))
    request_decide(actor=lead, public_id=denied.public_id, verdict="deny", reason="Use the shared one, please.")
    key_create(actor=member, project=cast.project, name="notebook")
    ended, _ = key_create(actor=member, project=cast.project, name="old laptop")
    key_revoke(actor=member, public_id=ended.public_id)
    _time(cast.project, cluster, ready)
    return Scene(cast=cast, ready=ready, failing=failing, waiting=waiting.public_id, decided=decided.public_id)


def _fleet(cluster: Cluster) -> None:
    at = now()
    for number in range(1, 4):
        gone = 1 if number == 3 else 0
        Node.objects.create(
            cluster=cluster,
            uid=f"node-{number}",
            name=f"h100-{number}",
            labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            capacity={"nvidia.com/gpu": "8", "cpu": "96"},
            allocatable={"nvidia.com/gpu": str(8 - gone), "cpu": "96"},
            ready=True,
            unschedulable=number == 2,
            resource_version="1",
            observed_at=at,
            heartbeat_at=at,
        )
    Node.objects.create(
        cluster=cluster,
        uid="node-rx",
        name="rx-1",
        labels={"amd.com/gpu.product-name": "AMD_Radeon_RX_7900_XTX"},
        capacity={"amd.com/gpu": "1"},
        allocatable={"amd.com/gpu": "1"},
        ready=False,
        resource_version="1",
        observed_at=at,
        heartbeat_at=at - timedelta(minutes=7),
    )
    CoverageGap.objects.create(
        cluster=cluster,
        started_at=at - timedelta(hours=5),
        ended_at=at - timedelta(hours=5) + timedelta(minutes=12),
        reason="the API server did not answer",
    )


def _observe(row: Deployment, at: Any) -> None:
    pods = tuple(
        PodSighting(
            uid=f"uid-{number}",
            name=f"{row.object_name}-7d9c-{number}",
            phase="Running",
            ready=True,
            scheduled=True,
            running=True,
            node=f"h100-{number}",
            ip=f"127.64.0.{number}",
            port=8080,
            created_at=(at - timedelta(hours=3)).isoformat(),
        )
        for number in (1, 2)
    )
    events = (
        EventSighting((at - timedelta(hours=3)).isoformat(), "Normal", "ScalingReplicaSet", "Scaled up to 2", "Deployment"),
        EventSighting((at - timedelta(hours=2)).isoformat(), "Warning", "Unhealthy", "Startup probe failed: 503", "Pod", 3),
    )
    workload = WorkloadSighting(
        present=True,
        uid="w",
        generation=1,
        observed_generation=1,
        replicas_wanted=2,
        replicas=2,
        updated=2,
        ready=2,
        available=2,
    )
    seen = Sighting(workload=workload, pods=pods, events=events).as_json() | {"applied_generation": row.generation}
    condition = {"type": "Applied", "status": "True", "reason": "InSync", "message": "", "since": at.isoformat()}
    Deployment.objects.filter(pk=row.pk).update(
        observed=seen,
        observed_at=at,
        conditions=[condition],
        phase_since=at - timedelta(hours=2),
        phase_message="2 of 2 ready.",
    )
    for number, pod in enumerate(pods, 1):
        ObservedPod.objects.create(
            cluster=row.cluster,
            uid=pod.uid,
            namespace=row.project.namespace,
            name=pod.name,
            node_name=pod.node,
            owner_kind="deployment",
            owner_id=row.public_id,
            project_id=row.project.public_id,
            devices={"nvidia.com/gpu": number},
            phase="Running",
            ready=True,
            status={"phase": "Running"},
            resource_version="1",
            observed_at=at,
            created_at=at - timedelta(hours=3),
        )
    AppliedObject.objects.create(
        deployment=row,
        project=row.project,
        api_version="apps/v1",
        kind="Deployment",
        namespace=row.project.namespace,
        name=row.object_name,
        uid="w",
        spec_hash="0" * 64,
        generation=1,
        manifest=MANIFEST,
    )
    steps = (("declared", "", 180), ("loading", "WaitingForPodsReady", 179), ("ready", "", 120))
    for phase, reason, minutes in steps:
        StateChange.objects.create(
            deployment=row, project=row.project, phase=phase, reason=reason, at=at - timedelta(minutes=minutes)
        )


def _observe_crash(row: Deployment, at: Any) -> None:
    pod = PodSighting(
        uid="uid-9",
        name="mixtral-0",
        phase="Running",
        scheduled=True,
        waiting="CrashLoopBackOff",
        waiting_message="back-off 5m0s restarting failed container",
        last_exit="OOMKilled (exit code 137)",
        restarts=7,
        node="h100-3",
        ip="127.64.0.9",
        port=8080,
        created_at=(at - timedelta(hours=1)).isoformat(),
    )
    workload = WorkloadSighting(
        present=True, uid="x", generation=1, observed_generation=1, replicas_wanted=1, replicas=1, updated=1
    )
    seen = Sighting(workload=workload, pods=(pod,)).as_json() | {"applied_generation": row.generation}
    Deployment.objects.filter(pk=row.pk).update(observed=seen, observed_at=at)


def _time(project: Project, cluster: Cluster, row: Deployment) -> None:
    at = now()
    for number in range(12):
        began = at - timedelta(minutes=15 * (number + 1))
        GpuInterval.objects.create(
            cluster=cluster,
            pod_uid=f"past-{number}",
            resource_name="nvidia.com/gpu",
            namespace=project.namespace,
            pod_name=f"{row.object_name}-{number}",
            node_name="h100-1",
            project_id=project.public_id,
            consumer_kind="deployment",
            consumer_id=row.public_id,
            profile_name="h100-80gb",
            devices=2,
            gpu_equiv_ppm=1_000_000,
            started_at=began,
            start_basis="pod_scheduled",
            running_at=began + timedelta(seconds=42),
            ended_at=began + timedelta(minutes=12, microseconds=number),
            end_basis="container_finished",
        )
