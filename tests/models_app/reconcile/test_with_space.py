"""From the approval to a ready engine, both loops on the real control plane: fence, limits and Pod Security in force."""

from __future__ import annotations

import secrets

import pytest

from deploy.local.controlplane_api import Api
from fleet.reconcile.spaces import RECONCILER as SPACES
from models_app.models import Deployment
from models_app.reconcile.deployments import RECONCILER
from portal.approvals.domain.states import RequestState
from portal.approvals.selectors.requests import request_get
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from portal.tenancy.models import Project, unscoped
from portal.work.loop import run_pass
from tests.cast import Cast, actor_of, make_cell, make_cluster, make_grant, make_profile
from tests.cluster import eventually
from tests.models_app.engines.specs import image_of

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]


def test_what_was_approved_becomes_ready_inside_its_own_space(cast: Cast, admin: Api, cluster_credential: str) -> None:
    namespace = f"sw-test-{secrets.token_hex(4)}"
    Project.objects.filter(pk=cast.project.pk).update(namespace=namespace)
    cast.project.refresh_from_db()
    make_cluster("local", credential=cluster_credential)
    profile = make_profile("h100", cells=False)
    make_cell(profile, backend="llamacpp", model_format="gguf", image=image_of("llamacpp-cuda"))
    make_grant(cast.project, profile, devices=2)
    request = request_submit(
        actor=actor_of(cast.member),
        kind="deployment",
        project=cast.project,
        payload={
            "name": "chat",
            "profile": "h100",
            "source": "hf://acme/tiny",
            "source_file": "tiny.gguf",
            "replicas_min": 2,
            "context_length": 512,
        },
    )
    request_decide(actor=actor_of(cast.lead), public_id=request.public_id, verdict="approve")

    def ready() -> bool:
        run_pass(SPACES)
        run_pass(RECONCILER, made)
        with unscoped("test"):
            return Deployment.objects.get().phase == "ready"

    with unscoped("test"):
        made = Deployment.objects.get().public_id
    eventually(ready, within=60, what="ready in its space")
    assert request_get(actor=actor_of(cast.member), public_id=request.public_id).state == RequestState.FULFILLED
    live = admin.get(f"/api/v1/namespaces/{namespace}")
    assert live is not None
    assert live["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    [quota] = [item for item in admin.items("v1", "ResourceQuota") if item["metadata"]["namespace"] == namespace]
    assert quota["status"]["used"]["requests.nvidia.com/gpu"] == "2"
