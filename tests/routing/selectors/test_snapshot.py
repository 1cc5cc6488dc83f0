"""What the gateway may know: keys in force of open projects, served models, and nothing of secrets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import ObservedPod
from models_app.models import Deployment
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.tenancy.models import ProjectState, unscoped
from routing.domain.keys import digest
from routing.domain.table import Endpoint
from routing.models import ApiKey
from routing.selectors.snapshot import route_table_read
from routing.services.keys import key_create, key_revoke
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile

Act = Callable[[str], Actor]


def test_keys_in_force_are_there_by_digest(cast: Cast, act: Act) -> None:
    key, secret = key_create(actor=act("member"), project=cast.project, name="k", expires_in_days=1)
    found = route_table_read().key(digest(secret), now())
    assert found is not None
    assert (found.key_id, found.project_id, found.expires_at) == (key.public_id, cast.project.public_id, key.expires_at)


def test_c39_revoked_expired_and_closed_are_absent(cast: Cast, act: Act) -> None:
    revoked, _ = key_create(actor=act("member"), project=cast.project, name="revoked")
    key_revoke(actor=act("member"), public_id=revoked.public_id)
    expired, _ = key_create(actor=act("member"), project=cast.project, name="expired")
    with unscoped("a test moves time"):
        ApiKey.objects.filter(pk=expired.pk).update(expires_at=now() - timedelta(seconds=1))
    key_create(actor=act("outsider"), project=cast.other_project, name="closed")
    cast.other_project.state = ProjectState.CLOSED.value
    cast.other_project.save()
    kept, _ = key_create(actor=act("lead"), project=cast.project, name="kept")
    assert [key.key_id for key in route_table_read().keys.values()] == [kept.public_id]


def test_the_table_is_read_in_a_constant_number_of_queries(cast: Cast, act: Act) -> None:
    costs = []
    for _ in range(2):
        for _ in range(5):
            key_create(actor=act("lead"), project=cast.project, name="k")
        with CaptureQueriesContext(connection) as queries:
            route_table_read()
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 4


@pytest.fixture
def deployment(cast: Cast) -> Deployment:
    grant = make_grant(cast.project, make_profile())
    return make_deployment(grant, make_cluster("local"), author=cast.member, name="chat")


def make_pod(deployment: Deployment, name: str, **fields: object) -> ObservedPod:
    values: dict[str, object] = {
        "cluster": deployment.cluster,
        "uid": name,
        "namespace": deployment.project.namespace,
        "name": name,
        "owner_kind": "deployment",
        "owner_id": deployment.public_id,
        "project_id": deployment.project.public_id,
        "phase": "Running",
        "ready": True,
        "pod_ip": "127.64.0.9",
        "port": 8080,
        "resource_version": "1",
        "observed_at": now(),
    }
    return ObservedPod.objects.create(**{**values, **fields})


def test_a_served_model_is_routed_to_its_ready_pods(deployment: Deployment) -> None:
    make_pod(deployment, "ready")
    make_pod(deployment, "loading", ready=False, pod_ip="127.64.0.10")
    make_pod(deployment, "ending", pod_ip="127.64.0.11", deletion_at=now())
    make_pod(deployment, "gone", pod_ip="127.64.0.12", gone_at=now())
    make_pod(deployment, "forged", pod_ip="127.64.0.13", namespace="elsewhere")
    (route,) = route_table_read().routes
    assert (route.deployment_id, route.project_id, route.model) == (
        deployment.public_id,
        deployment.project.public_id,
        "chat",
    )
    assert set(route.endpoints) == {Endpoint("127.64.0.11", 8080, draining=True), Endpoint("127.64.0.9", 8080)}


def test_a_model_without_a_pod_is_known_and_has_no_endpoint(deployment: Deployment) -> None:
    (route,) = route_table_read().routes
    assert route.endpoints == ()


def test_the_tables_time_is_not_after_what_it_says(db: None) -> None:
    """Read before the rows: a table never claims to know what was committed after it looked."""
    before = now()
    table = route_table_read()
    assert before - timedelta(seconds=1) <= table.read_at <= now() + timedelta(seconds=1)
