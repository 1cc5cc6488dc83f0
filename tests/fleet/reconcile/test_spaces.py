"""The loop of project spaces, on the fake for faults and on the real API server for truth."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from fleet.cluster import Forbidden, ObjectRef, Unreachable, placed
from fleet.models import Grant, ProjectSpace
from fleet.reconcile.spaces import RECONCILER, SpaceReconciler
from fleet.services.parts.spaces import space_ensure, space_touch, spaces_end_with_project
from portal.kernel.clock import FrozenClock, frozen
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.loop import Verdict, run_pass, settle
from portal.work.services.parts.generations import generation_raise
from tests.cast import Cast, actor_of, make_cluster, make_grant, make_profile
from tests.fleet.cluster.fake import FakeCluster

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ALL = ["LimitRange", "Namespace", "NetworkPolicy", "NetworkPolicy", "NetworkPolicy", "ResourceQuota", "RoleBinding"]


@pytest.fixture
def clock() -> Iterator[FrozenClock]:
    with frozen(NOON) as clock:
        yield clock


@pytest.fixture
def fake(clock: FrozenClock) -> Iterator[FakeCluster]:
    fake = FakeCluster()
    with placed("fake", fake):
        yield fake


def make_space(cast: Cast, credential: str = "fake") -> ProjectSpace:
    with transaction.atomic():
        return space_ensure(
            actor=actor_of(cast.member, request_id="req-7"),
            project=cast.project,
            cluster=make_cluster(credential=credential),
        )


@pytest.fixture
def space(db: None, cast: Cast, fake: FakeCluster) -> ProjectSpace:
    return make_space(cast)


def fresh(space: ProjectSpace) -> ProjectSpace:
    with unscoped("test"):
        return ProjectSpace.objects.select_related("project").get(pk=space.pk)


def synced(space: ProjectSpace) -> tuple[str, str]:
    (condition,) = [item for item in fresh(space).conditions if item["type"] == "Synced"]
    return condition["status"], condition["reason"]


def reference(space: ProjectSpace, kind: str = "Namespace") -> ObjectRef:
    (entry,) = [entry for entry in fresh(space).applied if entry["kind"] == kind]
    return ObjectRef(entry["api_version"], kind, entry["namespace"], entry["name"])


def hard_of(fake: FakeCluster) -> dict[str, str]:
    (quota,) = fake.objects("ResourceQuota")
    return quota["spec"]["hard"]  # type: ignore[no-any-return]


def test_a_new_space_gets_all_its_objects(space: ProjectSpace, fake: FakeCluster) -> None:
    settle(RECONCILER)
    assert sorted(item["kind"] for item in fake.objects()) == ALL
    assert synced(space) == ("True", "Applied")
    assert len(fresh(space).applied) == len(ALL)
    (namespace,) = fake.objects("Namespace")
    assert namespace["metadata"]["annotations"]["slipway/request-id"] == "req-7"


def test_a_settled_space_is_only_read_again(space: ProjectSpace, fake: FakeCluster, clock: FrozenClock) -> None:
    settle(RECONCILER)
    fake.calls.clear()
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    assert len(settle(RECONCILER)) == 1
    assert {method for method, _ in fake.calls} == {"get"}


def test_the_fence_follows_the_grants(space: ProjectSpace, fake: FakeCluster, cast: Cast) -> None:
    profile = make_profile()
    settle(RECONCILER)
    grant: Grant = make_grant(cast.project, profile, devices=8)
    with transaction.atomic():
        space_touch(project=cast.project)
    settle(RECONCILER)
    assert hard_of(fake) == {"requests.nvidia.com/gpu": "8"}
    with unscoped("test"):
        Grant.objects.filter(pk=grant.pk).update(state="revoked")
    with transaction.atomic():
        space_touch(project=cast.project)
    settle(RECONCILER)
    assert hard_of(fake) == {"requests.nvidia.com/gpu": "0"}


def test_what_somebody_changed_is_put_right_or_shown(space: ProjectSpace, fake: FakeCluster, clock: FrozenClock) -> None:
    make_profile()
    settle(RECONCILER)
    with transaction.atomic():
        generation_raise(fresh(space))
    settle(RECONCILER)
    path = ".metadata.labels.pod-security~kubernetes~io/enforce"
    fake.edit(reference(space), path, "privileged", manager="kubectl")
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    report = run_pass(RECONCILER)
    assert report is not None
    assert report.verdict == Verdict.BLOCKED
    assert synced(space) == ("False", "FieldConflict")
    assert "kubectl" in fresh(space).last_error


def test_what_somebody_removed_comes_back(space: ProjectSpace, fake: FakeCluster, clock: FrozenClock) -> None:
    settle(RECONCILER)
    fake.remove(reference(space, "RoleBinding"))
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    settle(RECONCILER)
    assert sorted(item["kind"] for item in fake.objects()) == ALL


def test_d1_a_namespace_of_somebody_else_is_never_adopted(space: ProjectSpace, fake: FakeCluster, cast: Cast) -> None:
    fake.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cast.project.namespace}})
    before = fake.objects()
    report = run_pass(RECONCILER)
    assert report is not None
    assert report.verdict == Verdict.BLOCKED
    assert synced(space) == ("False", "NameTaken")
    assert fake.objects() == before


def test_d3_an_unreachable_cluster_changes_no_row_and_says_unknown(
    space: ProjectSpace, fake: FakeCluster, clock: FrozenClock
) -> None:
    settle(RECONCILER)
    applied = fresh(space).applied
    fake.fail("*", Unreachable("no answer"), times=3)
    clock.advance(timedelta(seconds=settings.RESYNC_SECONDS))
    run_pass(RECONCILER)
    assert synced(space) == ("Unknown", "ClusterUnreachable")
    assert fresh(space).applied == applied
    fake.mend()
    clock.advance(timedelta(seconds=1))
    settle(RECONCILER)
    assert synced(space) == ("True", "Applied")


@pytest.mark.parametrize("kind", ["Namespace", "ResourceQuota", "NetworkPolicy", "RoleBinding"])
@pytest.mark.parametrize("took_effect", [False, True])
def test_a_lost_answer_makes_nothing_twice(
    space: ProjectSpace, fake: FakeCluster, clock: FrozenClock, kind: str, took_effect: bool
) -> None:
    fake.fail("apply", Unreachable("the answer was lost"), took_effect=took_effect, kind=kind)
    run_pass(RECONCILER)
    clock.advance(timedelta(seconds=1))
    settle(RECONCILER)
    assert sorted(item["kind"] for item in fake.objects()) == ALL
    assert synced(space) == ("True", "Applied")


def test_no_kubeconfig_yet_is_a_cluster_that_is_not_there_yet(db: None, cast: Cast, clock: FrozenClock) -> None:
    space = make_space(cast, credential="not-written-yet")
    run_pass(RECONCILER)
    assert synced(space) == ("Unknown", "ClusterUnreachable")
    fake = FakeCluster()
    with placed("not-written-yet", fake):
        clock.advance(timedelta(seconds=1))
        settle(RECONCILER)
    assert sorted(item["kind"] for item in fake.objects()) == ALL


def test_the_first_settling_wakes_what_waits_for_the_namespace(
    space: ProjectSpace, fake: FakeCluster, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(hints, "nudge", lambda kind, public_id: asked.append((kind, public_id)))
    grant = make_grant(cast.project, make_profile(), devices=8)
    grant.holds.create(project=cast.project, consumer_kind="deployment", consumer_id="dep_1", devices=1)
    run_pass(RECONCILER)
    assert asked == [("deployment", "dep_1")]
    run_pass(RECONCILER, space.public_id)
    assert asked == [("deployment", "dep_1")]


def test_d4_an_overtaken_pass_leaves_the_later_generation_alone(space: ProjectSpace, fake: FakeCluster, cast: Cast) -> None:
    make_profile()
    settle(RECONCILER)
    stale = SpaceReconciler().load(space.pk)
    make_grant(cast.project, make_profile(), devices=5)
    with transaction.atomic():
        space_touch(project=cast.project)
    settle(RECONCILER)
    before = fake.objects()
    RECONCILER.reconcile(stale, NOON)
    assert fake.objects() == before
    assert hard_of(fake) == {"requests.nvidia.com/gpu": "5"}


def end(cast: Cast) -> None:
    with transaction.atomic():
        spaces_end_with_project(actor=actor_of(cast.lead), project=cast.project)


def test_a_given_up_space_goes_with_its_namespace(
    space: ProjectSpace, fake: FakeCluster, cast: Cast, clock: FrozenClock
) -> None:
    settle(RECONCILER)
    end(cast)
    settle(RECONCILER)
    assert fake.objects() == []
    assert fresh(space).archived_at is None
    clock.advance(timedelta(seconds=2))
    settle(RECONCILER)
    assert fresh(space).archived_at == clock.at


def test_d6_a_namespace_that_holds_something_of_others_stays(
    space: ProjectSpace, fake: FakeCluster, cast: Cast, clock: FrozenClock
) -> None:
    settle(RECONCILER)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": cast.project.namespace}}
    fake.put(theirs)
    end(cast)
    settle(RECONCILER)
    assert synced(space) == ("False", "NamespaceKept")
    assert "ConfigMap theirs" in fresh(space).conditions[0]["message"]
    kinds = sorted(item["kind"] for item in fake.objects())
    assert "ConfigMap" in kinds
    assert "Namespace" in kinds
    assert "RoleBinding" not in kinds
    fake.remove(ObjectRef.of(theirs))
    clock.advance(timedelta(minutes=1))
    settle(RECONCILER)
    assert fake.objects() == []


def test_d6_what_may_not_be_read_is_not_taken_for_empty(space: ProjectSpace, fake: FakeCluster, cast: Cast) -> None:
    settle(RECONCILER)
    fake.fail("list_all", Forbidden("pods is forbidden"), kind="Pod", times=9)
    end(cast)
    settle(RECONCILER)
    assert synced(space) == ("False", "NamespaceKept")
    assert "Namespace" in [item["kind"] for item in fake.objects()]


def test_d1_a_namespace_that_was_recreated_by_others_is_not_removed(
    space: ProjectSpace, fake: FakeCluster, cast: Cast
) -> None:
    settle(RECONCILER)
    fake.remove(reference(space))
    fake.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cast.project.namespace}})
    end(cast)
    settle(RECONCILER)
    assert "Namespace" in [item["kind"] for item in fake.objects()]
    assert fresh(space).archived_at == NOON


def versions_of(space: ProjectSpace) -> dict[str, str]:
    """Without the fence, whose status the quota controller writes."""
    return {entry["name"]: entry["resource_version"] for entry in fresh(space).applied if entry["kind"] != "ResourceQuota"}


@pytest.mark.cluster
@pytest.mark.django_db
def test_on_a_real_cluster(cast: Cast, admin: Any, cluster_credential: str, clock: FrozenClock) -> None:
    # Of its own: the namespace of the test before may still be ending.
    cast.project.namespace = f"sw-scene-{secrets.token_hex(4)}"
    cast.project.save(update_fields=["namespace"])
    grant = make_grant(cast.project, make_profile(), devices=8)
    space = make_space(cast, cluster_credential)
    report = run_pass(RECONCILER)
    assert report is not None
    assert (report.verdict, fresh(space).last_error) == (Verdict.SETTLED, "")
    quota = admin.items("v1", "ResourceQuota", cast.project.namespace)
    assert quota[0]["spec"]["hard"] == {"requests.nvidia.com/gpu": "8"}
    versions = versions_of(space)

    # Nothing the server makes of the objects is drift: a resync writes nothing.
    view = RECONCILER.load(space.pk)
    report = run_pass(RECONCILER, space.public_id)
    assert report is not None
    assert report.verdict == Verdict.SETTLED
    assert versions_of(space) == versions

    # A later generation changes the fence, and an older pass that wakes now does not win (D4).
    with unscoped("test"):
        Grant.objects.filter(pk=grant.pk).update(devices=3)
    with transaction.atomic():
        space_touch(project=cast.project)
    assert run_pass(RECONCILER) is not None
    RECONCILER.reconcile(view, NOON)
    quota = admin.items("v1", "ResourceQuota", cast.project.namespace)
    assert quota[0]["spec"]["hard"] == {"requests.nvidia.com/gpu": "3"}

    end(cast)
    report = run_pass(RECONCILER)
    assert report is not None
    assert report.verdict in {Verdict.WAIT, Verdict.BLOCKED}
    assert admin.items("rbac.authorization.k8s.io/v1", "RoleBinding", cast.project.namespace) == []
