from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from fleet.consumers import stop_of
from fleet.models import Cluster, Grant, QuotaHold
from models_app.domain.payload import REPLICAS_MAX
from models_app.models import Deployment, Revision
from models_app.services.deployments import deployment_delete, deployment_scale
from models_app.services.parts.deployments import deployment_stop, deployments_end_with_project
from models_app.services.revisions import revision_create
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaExceeded, Stale
from portal.tenancy.models import unscoped
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db

Act = Callable[[str], Actor]


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster("local")


@pytest.fixture
def grant(cast: Cast) -> Grant:
    return make_grant(cast.project, make_profile(), devices=8)


@pytest.fixture
def deployment(cast: Cast, grant: Grant, cluster: Cluster) -> Deployment:
    return make_deployment(grant, cluster, author=cast.member, name="chat", devices_per_replica=2)


def held(deployment: Deployment) -> int:
    with unscoped("test"):
        return QuotaHold.objects.get(consumer_id=deployment.public_id, ended_at=None).devices


def events(deployment: Deployment, action: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(object_id=deployment.public_id, action=action))


def test_growth_is_held_before_it_is_wanted(deployment: Deployment, act: Act) -> None:
    row = deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=1, replicas_max=4)
    assert held(deployment) == 8
    assert (row.replicas_max, row.generation, row.version) == (4, deployment.generation + 1, deployment.version + 1)
    [event] = events(deployment, "deployment.scale")
    assert (event.before["replicas_max"], event.after["replicas_max"]) == (1, 4)


def test_growth_beyond_the_grant_changes_nothing(deployment: Deployment, act: Act) -> None:
    with pytest.raises(QuotaExceeded, match="grant has 8"):
        deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=1, replicas_max=5)
    with unscoped("test"):
        row = Deployment.objects.get(pk=deployment.pk)
    assert (row.replicas_max, row.generation) == (1, deployment.generation)
    assert held(deployment) == 2
    assert events(deployment, "deployment.scale") == []


def test_shrinking_leaves_the_hold_to_the_loop(deployment: Deployment, act: Act) -> None:
    deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=0, replicas_max=3)
    deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=0, replicas_max=1)
    assert held(deployment) == 6


def test_the_same_range_again_is_no_change(deployment: Deployment, act: Act) -> None:
    for _ in range(2):
        row = deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=1, replicas_max=2)
    assert row.generation == deployment.generation + 1
    assert len(events(deployment, "deployment.scale")) == 1


@pytest.mark.parametrize(
    ("low", "high", "field"),
    [(-1, 1, "replicas_min"), (2, 1, "replicas_min"), (0, 0, "replicas_max"), (1, REPLICAS_MAX + 1, "replicas_max")],
)
def test_an_impossible_range_is_refused_by_field(deployment: Deployment, act: Act, low: int, high: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=low, replicas_max=high)
    assert field in refusal.value.fields


def test_a_stale_version_is_told(deployment: Deployment, act: Act) -> None:
    scale: dict[str, Any] = {"public_id": deployment.public_id, "replicas_min": 1, "replicas_max": 2}
    deployment_scale(actor=act("member"), version=deployment.version, **scale)
    with pytest.raises(Stale, match="version"):
        deployment_scale(actor=act("lead"), version=deployment.version, **{**scale, "replicas_max": 3})


@pytest.mark.parametrize(
    ("who", "error"),
    [("viewer", Forbidden), ("auditor", Forbidden), ("outsider", NotFound), ("fleet_operator", NotFound)],
)
def test_who_may_not(deployment: Deployment, act: Act, who: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        deployment_scale(actor=act(who), public_id=deployment.public_id, replicas_min=1, replicas_max=1)
    with pytest.raises(error):
        deployment_delete(actor=act(who), public_id=deployment.public_id)
    with pytest.raises(error):
        revision_create(actor=act(who), public_id=deployment.public_id, changes={"cpu": "2"})


def test_deleting_stops_wanting_it_and_keeps_the_hold(deployment: Deployment, act: Act) -> None:
    row = deployment_delete(actor=act("member"), public_id=deployment.public_id, reason="done with it")
    assert (row.desired, row.generation) == ("absent", deployment.generation + 1)
    assert held(deployment) == 2
    [event] = events(deployment, "deployment.delete")
    assert event.reason == "done with it"


def test_c21_deleting_again_is_harmless(deployment: Deployment, act: Act) -> None:
    first = deployment_delete(actor=act("member"), public_id=deployment.public_id, version=deployment.version)
    second = deployment_delete(actor=act("lead"), public_id=deployment.public_id, version=deployment.version)
    assert first.generation == second.generation
    assert len(events(deployment, "deployment.delete")) == 1


def test_nothing_of_it_changes_once_it_is_being_deleted(deployment: Deployment, act: Act) -> None:
    deployment_delete(actor=act("member"), public_id=deployment.public_id)
    with pytest.raises(Conflict, match="being deleted"):
        deployment_scale(actor=act("member"), public_id=deployment.public_id, replicas_min=1, replicas_max=2)
    with pytest.raises(Conflict, match="being deleted"):
        revision_create(actor=act("member"), public_id=deployment.public_id, changes={"cpu": "2"})
    assert held(deployment) == 2


def test_a_revision_is_the_last_one_with_the_changes(deployment: Deployment, act: Act) -> None:
    revision = revision_create(
        actor=act("member"),
        public_id=deployment.public_id,
        changes={"memory": "32Gi", "context_length": 4096, "source_file": "x.gguf", "arguments": ["--flash-attn=on"]},
    )
    with unscoped("test"):
        first = Revision.objects.get(deployment=deployment, number=1)
        row = Deployment.objects.get(pk=deployment.pk)
    assert (revision.number, row.revision, row.generation) == (2, 2, deployment.generation + 1)
    assert revision.image == first.image
    assert revision.configuration["memory"] == "32Gi"
    assert revision.configuration["arguments"] == ["--flash-attn=on"]
    assert first.configuration == {}
    [event] = events(deployment, "deployment.revise")
    assert (event.before["number"], event.after["number"]) == (1, 2)


def test_a_revision_that_changes_nothing_is_none(deployment: Deployment, act: Act) -> None:
    changes = {"memory": "32Gi", "source_file": "x.gguf"}
    first = revision_create(actor=act("member"), public_id=deployment.public_id, changes=changes)
    again = revision_create(actor=act("member"), public_id=deployment.public_id, changes=changes)
    assert first.pk == again.pk


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"image": "nginx:latest"}, "image"),
        ({"memory": "1KB"}, "memory"),
        ({"name": "other"}, "name"),
        ({"arguments": ["--port=1"], "source_file": "x.gguf"}, "arguments"),
        ({"source": "s3://x/y"}, "source"),
    ],
)
def test_a_revision_that_cannot_be_is_refused_by_field(
    deployment: Deployment, act: Act, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        revision_create(actor=act("member"), public_id=deployment.public_id, changes=changes)
    assert set(refusal.value.fields) == {field}


def test_whatever_ends_its_grant_stops_it_once(deployment: Deployment, act: Act) -> None:
    stop = stop_of("deployment")
    assert stop is not None
    for _ in range(2):
        with transaction.atomic():
            stop(actor=act("org_admin"), public_id=deployment.public_id, reason="its grant is revoked")
    [event] = events(deployment, "deployment.delete")
    assert event.reason == "its grant is revoked"
    assert held(deployment) == 2


def test_a_project_that_closes_stops_all_of_its_deployments(
    cast: Cast, grant: Grant, cluster: Cluster, deployment: Deployment, act: Act
) -> None:
    other = make_deployment(grant, cluster, author=cast.member)
    with transaction.atomic():
        deployments_end_with_project(actor=act("org_admin"), project=cast.project)
    with unscoped("test"):
        assert set(Deployment.objects.values_list("desired", flat=True)) == {"absent"}
    assert len(events(other, "deployment.delete")) == len(events(deployment, "deployment.delete")) == 1


@pytest.mark.django_db(transaction=True)
def test_parts_refuse_to_run_outside_a_transaction(deployment: Deployment, act: Act) -> None:
    with pytest.raises(AssertionError):
        deployment_stop(actor=act("lead"), public_id=deployment.public_id, reason="x")
