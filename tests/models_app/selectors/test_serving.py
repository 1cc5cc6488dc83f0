from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Cluster, Grant, ObservedPod
from models_app.domain.sightings import Sighting, WorkloadSighting, pod_sighting
from models_app.models import Deployment
from models_app.selectors.serving import ServingAddress, serving_targets
from portal.kernel.clock import now
from portal.tenancy.models import Project, unscoped
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile
from tests.models_app.domain.pods import raw_pod

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


@pytest.fixture
def grant(cast: Cast) -> Grant:
    return make_grant(cast.project, make_profile(), devices=50)


@pytest.fixture
def deployment(cast: Cast, grant: Grant, cluster: Cluster) -> Deployment:
    return make_deployment(grant, cluster, author=cast.member, name="chat")


def observe(deployment: Deployment, uid: str, *, age: int = 0, **changes: Any) -> ObservedPod:
    """A pod as the observer stored it ``age`` seconds ago."""
    return ObservedPod.objects.create(
        **{
            "cluster": deployment.cluster,
            "uid": uid,
            "namespace": deployment.project.namespace,
            "name": f"pod-{uid}",
            "owner_kind": "deployment",
            "owner_id": deployment.public_id,
            "phase": "Running",
            "ready": True,
            "pod_ip": "127.64.0.1",
            "port": 8080,
            "resource_version": "1",
            "observed_at": now() - timedelta(seconds=age),
            **changes,
        }
    )


def looked(deployment: Deployment, *pods: dict[str, Any], age: int = 0) -> None:
    """The loop's own sighting, ``age`` seconds ago."""
    sighting = Sighting(WorkloadSighting(present=True), tuple(pod_sighting(pod, generation_annotation="x") for pod in pods))
    with unscoped("test"):
        Deployment.objects.filter(pk=deployment.pk).update(
            observed=sighting.as_json(), observed_at=now() - timedelta(seconds=age)
        )


def addresses() -> tuple[ServingAddress, ...]:
    [target] = serving_targets()
    return target.addresses


def test_a_ready_pod_serves(deployment: Deployment) -> None:
    observe(deployment, "a")
    [target] = serving_targets()
    assert (target.project_id, target.model_name) == (deployment.project.public_id, "chat")
    assert target.deployment_id == deployment.public_id
    assert target.addresses == (ServingAddress("127.64.0.1", 8080, draining=False),)


def test_a_model_without_a_ready_pod_is_listed_without_addresses(deployment: Deployment) -> None:
    observe(deployment, "a", ready=False)
    observe(deployment, "b", pod_ip="")
    observe(deployment, "c", phase="Failed")
    observe(deployment, "d", gone_at=now())
    assert addresses() == ()


def test_a_pod_that_is_going_drains(deployment: Deployment) -> None:
    observe(deployment, "a", deletion_at=now(), ready=True)
    assert addresses() == (ServingAddress("127.64.0.1", 8080, draining=True),)


@pytest.mark.parametrize("forged", [{"namespace": "elsewhere"}, {"owner_kind": "space"}, {"owner_id": "dep_x"}])
def test_labels_in_a_foreign_namespace_serve_nobody(deployment: Deployment, forged: dict[str, Any]) -> None:
    observe(deployment, "a", **forged)
    assert addresses() == ()


def test_a_pod_on_another_cluster_is_not_its_pod(deployment: Deployment) -> None:
    observe(deployment, "a", cluster=make_cluster())
    assert addresses() == ()


def test_what_is_unwanted_archived_or_of_a_closed_project_is_left_out(
    cast: Cast, deployment: Deployment, grant: Grant, cluster: Cluster
) -> None:
    make_deployment(grant, cluster, author=cast.member, desired="absent")
    make_deployment(grant, cluster, author=cast.member, archived_at=now())
    assert [target.model_name for target in serving_targets()] == ["chat"]
    Project.objects.filter(pk=cast.project.pk).update(state="closed")
    assert serving_targets() == []


def test_the_loop_alone_is_enough_when_the_observer_stands_still(deployment: Deployment) -> None:
    looked(deployment, raw_pod("a", ip="127.64.0.7"))
    assert addresses() == (ServingAddress("127.64.0.7", 8080, draining=False),)


def test_of_two_words_on_a_pod_the_later_counts(deployment: Deployment) -> None:
    looked(deployment, raw_pod("a"), age=10)
    observe(deployment, "a", ready=False)
    assert addresses() == ()
    looked(deployment, raw_pod("a", ip="127.64.0.8"), age=-10)
    assert [address.ip for address in addresses()] == ["127.64.0.8"]


def test_a_pod_that_a_later_whole_look_did_not_find_serves_no_more(deployment: Deployment) -> None:
    observe(deployment, "a", age=10)
    looked(deployment)
    assert addresses() == ()
    observe(deployment, "b", pod_ip="127.64.0.2", age=-10)
    assert [address.ip for address in addresses()] == ["127.64.0.2"]


def test_two_queries_whatever_the_fleet(cast: Cast, grant: Grant, cluster: Cluster) -> None:
    for number in range(12):
        row = make_deployment(grant, cluster, author=cast.member)
        observe(row, f"p{number}")
    with CaptureQueriesContext(connection) as queries:
        assert len(serving_targets()) == 12
    assert len(queries) == 2
