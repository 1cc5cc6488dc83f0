"""What the rendered space lets in and keeps out, asked of the real API server (Q2, D5).

NetworkPolicies are tested as objects (tests/fleet/domain/test_spaces.py): the local cluster enforces none.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.db import transaction

from deploy.local.controlplane_api import Api
from fleet.models import Grant, ProjectSpace
from fleet.reconcile.spaces import RECONCILER
from fleet.services.parts.spaces import space_ensure, space_touch
from portal.tenancy.models import unscoped
from portal.work.loop import Verdict, run_pass
from tests.cast import Cast, actor_of, make_cluster, make_grant, make_profile
from tests.cluster import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture
def grant(cast: Cast) -> Grant:
    return make_grant(cast.project, make_profile(), devices=2)


@pytest.fixture
def space(cast: Cast, admin: Api, cluster_credential: str, grant: Grant) -> ProjectSpace:
    """Made by the loop, and its fence counted by the quota controller."""
    cast.project.namespace = f"sw-admit-{secrets.token_hex(4)}"
    cast.project.save(update_fields=["namespace"])
    with transaction.atomic():
        space = space_ensure(
            actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential=cluster_credential)
        )
    passed(space)
    eventually(lambda: counted(admin, space) == "2", what="the quota controller took up the fence")
    return space


def passed(space: ProjectSpace) -> None:
    report = run_pass(RECONCILER, space.public_id)
    assert report is not None
    assert report.verdict == Verdict.SETTLED


def counted(admin: Api, space: ProjectSpace) -> str:
    (quota,) = admin.items("v1", "ResourceQuota", space.namespace)
    return str(quota.get("status", {}).get("hard", {}).get("requests.nvidia.com/gpu", ""))


def pod(space: ProjectSpace, devices: int, resource: str = "nvidia.com/gpu", **security: Any) -> dict[str, Any]:
    container = {
        "name": "x",
        "image": "registry.invalid/never@sha256:" + "c" * 64,
        "securityContext": {**SAFE, **security},
        "resources": {"limits": {resource: str(devices)}} if devices else {},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{secrets.token_hex(3)}", "namespace": space.namespace},
        # No node carries this: the pods stay unbound, and count all the same.
        "spec": {"nodeSelector": {"nothing": "here"}, "containers": [container]},
    }


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(httpx.HTTPStatusError) as caught:
        act()
    assert caught.value.response.status_code == 403
    return caught.value.response.text


def test_q2_what_was_granted_is_let_in_and_no_more(space: ProjectSpace, admin: Api) -> None:
    admin.create(pod(space, 1))
    admin.create(pod(space, 1))
    assert "exceeded quota: slipway-fence" in refused(lambda: admin.create(pod(space, 1)))


def test_a_device_that_nobody_granted_is_kept_out(space: ProjectSpace, admin: Api) -> None:
    make_profile("mi300", resource_name="amd.com/gpu")
    with transaction.atomic():
        space_touch(project=space.project)
    passed(space)
    eventually(
        lambda: "amd.com/gpu" in str(admin.items("v1", "ResourceQuota", space.namespace)[0].get("status")),
        what="the quota controller took up the new resource",
    )
    assert "exceeded quota" in refused(lambda: admin.create(pod(space, 1, "amd.com/gpu")))


def test_q1_lowering_a_grant_below_what_is_held_ends_no_pod(space: ProjectSpace, admin: Api, grant: Grant) -> None:
    with unscoped("test"):
        grant.holds.create(project=space.project, consumer_kind="deployment", consumer_id="dep_1", devices=2)
    admin.create(pod(space, 2))
    with unscoped("test"):
        Grant.objects.filter(pk=grant.pk).update(devices=1)
    with transaction.atomic():
        space_touch(project=space.project)
    passed(space)
    assert counted(admin, space) == "2"
    assert len(admin.items("v1", "Pod", space.namespace)) == 1


@pytest.mark.parametrize("security", [{"allowPrivilegeEscalation": True}, {"runAsNonRoot": False}, {"capabilities": {}}])
def test_pods_that_are_not_restricted_are_kept_out(space: ProjectSpace, admin: Api, security: dict[str, Any]) -> None:
    assert "violates PodSecurity" in refused(lambda: admin.create(pod(space, 0, **security)))


def test_containers_without_resources_get_the_defaults(space: ProjectSpace, admin: Api) -> None:
    made = admin.create(pod(space, 0))
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def test_the_projects_group_reads_its_namespace_and_nothing_else(space: ProjectSpace, admin: Api) -> None:
    headers = {"Impersonate-User": "ada", "Impersonate-Group": f"slipway:{space.project.public_id}"}

    def status(method: str, path: str, body: Any = None) -> int:
        return admin.http.request(method, path, headers=headers, json=body).status_code

    inside = f"/api/v1/namespaces/{space.namespace}"
    assert status("GET", f"{inside}/pods") == 200
    assert status("GET", f"{inside}/secrets") == 403
    assert status("POST", f"{inside}/pods", pod(space, 1)) == 403
    assert status("GET", "/api/v1/namespaces/kube-system/pods") == 403
    assert status("GET", "/api/v1/nodes") == 403
