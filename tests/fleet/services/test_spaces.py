from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from fleet.models import ProjectSpace
from fleet.services.parts.spaces import space_ensure, space_touch, spaces_end_with_project
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.tenancy.models import unscoped
from portal.work import hints
from tests.cast import Cast, actor_of, make_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: asked.append((kind, public_id)))
    return asked


def actor(cast: Cast) -> Actor:
    return actor_of(cast.member, request_id="req-1")


def test_a_space_is_made_once_with_its_audit_row(cast: Cast, asked: list[tuple[str, str]]) -> None:
    cluster = make_cluster()
    with transaction.atomic():
        first = space_ensure(actor=actor(cast), project=cast.project, cluster=cluster)
        second = space_ensure(actor=actor(cast), project=cast.project, cluster=cluster)
    assert first.pk == second.pk
    assert first.namespace == cast.project.namespace
    assert asked == [("space", first.public_id)]
    (event,) = AuditEvent.objects.filter(object_id=first.public_id)
    assert (event.action, event.project_id, event.request_id) == ("space.create", cast.project.public_id, "req-1")


def test_touching_raises_each_generation(cast: Cast, asked: list[tuple[str, str]]) -> None:
    with transaction.atomic():
        spaces = [space_ensure(actor=actor(cast), project=cast.project, cluster=make_cluster()) for _ in range(2)]
        asked.clear()
        space_touch(project=cast.project)
    assert asked == [("space", space.public_id) for space in spaces]
    with unscoped("test"):
        assert {space.generation for space in ProjectSpace.objects.all()} == {2}


def test_given_up_and_wanted_again(cast: Cast) -> None:
    cluster = make_cluster()
    with transaction.atomic():
        space = space_ensure(actor=actor(cast), project=cast.project, cluster=cluster)
        spaces_end_with_project(actor=actor(cast), project=cast.project)
        space.refresh_from_db()
        assert (space.desired, space.generation) == ("absent", 2)
        again = space_ensure(actor=actor(cast), project=cast.project, cluster=cluster)
    assert (again.pk, again.desired, again.generation) == (space.pk, "present", 3)
    actions = AuditEvent.objects.filter(object_id=space.public_id).order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["space.create", "space.end", "space.restore"]


def test_one_namespace_is_one_projects(cast: Cast) -> None:
    cluster = make_cluster()
    with transaction.atomic():
        space_ensure(actor=actor(cast), project=cast.project, cluster=cluster)
    with pytest.raises(IntegrityError), transaction.atomic():
        ProjectSpace.objects.create(cluster=cluster, project=cast.other_project, namespace=cast.project.namespace)


@pytest.mark.django_db(transaction=True)
def test_parts_refuse_to_run_outside_a_transaction(cast: Cast) -> None:
    assert not connection.in_atomic_block
    with pytest.raises(AssertionError, match="inside the transaction"):
        space_ensure(actor=actor(cast), project=cast.project, cluster=make_cluster())
    with pytest.raises(AssertionError, match="inside the transaction"):
        space_touch(project=cast.project)
