"""Nodes, capacity and grants through REST: totals for everybody, tenants' names for those who may read them."""

from __future__ import annotations

import pytest

from fleet.models import Node, ObservedPod
from models_app.models import Deployment
from portal.kernel.clock import now
from tests.api.conftest import Api
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(cast: Cast, deployment: Deployment) -> Node:
    """Eight H100s, one withdrawn (C09); one device held by the cast's project and two by another's."""
    node = Node.objects.create(
        cluster=deployment.cluster,
        uid="node-1",
        name="dgx-1",
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        capacity={"nvidia.com/gpu": "8"},
        allocatable={"nvidia.com/gpu": "7"},
        ready=True,
        resource_version="1",
        observed_at=now(),
    )
    for project, devices in ((cast.project, 1), (cast.other_project, 2)):
        ObservedPod.objects.create(
            cluster=deployment.cluster,
            uid=f"pod-of-{project.slug}",
            namespace=project.namespace,
            name=f"secret-{project.slug}",
            node_name=node.name,
            owner_kind="deployment",
            owner_id="dep_1",
            project_id=project.public_id,
            devices={"nvidia.com/gpu": devices},
            phase="Running",
            status={"phase": "Running"},
            resource_version="1",
            observed_at=now(),
        )
    return node


@pytest.mark.parametrize(
    ("name", "pods", "labels"),
    [
        ("viewer", ["secret-vision"], False),
        ("outsider", ["secret-speech"], False),
        ("auditor", None, True),
        ("platform_admin", [], True),
    ],
)
def test_pods_of_others_are_counted_and_not_named(
    api: Api, node: Node, name: str, pods: list[str] | None, labels: bool
) -> None:
    answer = api(name).get("/api/v1/nodes/")
    shown = answer.json()["results"][0]
    expected = ["secret-vision", "secret-speech"] if pods is None else pods
    assert sorted(pod["name"] for pod in shown["pods"]) == sorted(expected)
    assert shown["hidden_pods"] == 2 - len(expected)
    for hidden in {"secret-vision", "secret-speech"} - set(expected):
        assert hidden not in answer.content.decode()
    assert bool(shown["labels"]) is labels
    assert shown["devices"] == [
        {"resource_name": "nvidia.com/gpu", "capacity": 8, "allocatable": 7, "used": 3, "free": 4, "withdrawn": 1}
    ]
    assert shown["health"]["level"] == "degraded"
    assert "1 of 8 devices withdrawn" in shown["health"]["text"]


def test_capacity_is_the_same_for_everybody(api: Api, node: Node) -> None:
    answers = [api(name).get("/api/v1/capacity/").json()["results"] for name in ("outsider", "lead")]
    assert answers[0] == answers[1]
    assert {key: answers[0][0][key] for key in ("total", "used", "free", "nodes", "largest_node")} == {
        "total": 8,
        "used": 3,
        "free": 4,
        "nodes": 1,
        "largest_node": 8,
    }


def test_a_grant_and_who_holds_of_it(cast: Cast, api: Api, deployment: Deployment) -> None:
    viewer = api("viewer")
    use = viewer.get(f"/api/v1/projects/{cast.project.public_id}/grants/").json()["results"][0]
    assert (use["held"], use["free"], use["over"]) == (1, 7, 0)
    holds = viewer.get(f"/api/v1/grants/{use['grant']['id']}/holds/").json()["results"]
    assert [(hold["kind"], hold["id"], hold["devices"]) for hold in holds] == [("deployment", deployment.public_id, 1)]


def test_an_unpinned_image_never_enters_the_matrix(api: Api, deployment: Deployment) -> None:
    cell = {"backend": "vllm", "model_format": "safetensors", "support": "full", "image": "registry.invalid/vllm:latest"}
    answer = api("fleet_operator").put("/api/v1/profiles/h100/cells/", cell)
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == {"image"}


def test_usage_periods_are_checked(cast: Cast, api: Api) -> None:
    address = f"/api/v1/projects/{cast.project.public_id}/usage/"
    viewer = api("viewer")
    for query, field in (
        ({"start": "2026-01-01T00:00:00Z"}, "start"),
        ({"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "end"),
        ({"start": "2026-01-01T00:00:00Z", "end": "2027-06-01T00:00:00Z"}, "end"),
        ({"start": "0001-01-01T00:00:00Z", "end": "0001-02-01T00:00:00Z"}, "start"),
        ({"month": "2026-13"}, "month"),
        ({"month": "2026-1"}, "month"),
        ({"by": "user"}, "by"),
    ):
        answer = viewer.get(address, query)
        assert answer.status_code == 400, query
        assert field in answer.json()["fields"], query


def test_a_month_is_cut_by_the_clocks_of_the_project(cast: Cast, api: Api) -> None:
    cast.project.time_zone = "Europe/Berlin"
    cast.project.save()
    answer = api("viewer").get(f"/api/v1/projects/{cast.project.public_id}/usage/", {"month": "2026-10", "by": "day"}).json()
    assert (answer["period_start"], answer["period_end"]) == ("2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z")
    assert answer["time_zone"] == "Europe/Berlin"
