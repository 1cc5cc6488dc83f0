"""The ledger on real Postgres: watch and list decide alike, twice is once, labels prove nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from fleet.domain.nodes import NodeFacts
from fleet.domain.pods import PodFacts
from fleet.models import Cluster, GpuInterval, MeterAnomaly, ObservedPod, ProjectSpace
from fleet.selectors.occupancy import bound_devices
from fleet.selectors.usage import UsageLine, usage_by
from fleet.services.observations import PodSight, nodes_seen, pods_listed, pods_seen
from portal.kernel.clock import frozen
from portal.kernel.gpu_time import hours
from portal.tenancy.models import Project, unscoped
from tests.cast import Cast, make_cluster, make_profile
from tests.fleet.pods import DAY, clock, facts

pytestmark = pytest.mark.django_db

SEEN = clock("23:59:59")


@pytest.fixture
def cluster(cast: Cast) -> Cluster:
    cluster = make_cluster("lab", last_seen_at=SEEN, reachable=True)
    make_profile("h100", cells=False)
    with unscoped("a test's starting point"):
        ProjectSpace.objects.create(cluster=cluster, project=cast.project, namespace="lab")
        ProjectSpace.objects.create(cluster=cluster, project=cast.other_project, namespace="other")
    node = NodeFacts(
        uid="node",
        name="gpu-1",
        version=1,
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        capacity={"nvidia.com/gpu": "8"},
        allocatable={"nvidia.com/gpu": "8"},
        ready=True,
    )
    nodes_seen(cluster=cluster, nodes=[node], at=DAY)
    return cluster


def labels(project: Project, consumer: str = "dep_a") -> dict[str, str]:
    return {"slipway/kind": "deployment", "slipway/id": consumer, "slipway/project": project.public_id}


def watch(cluster: Cluster, *sights: tuple[PodFacts, datetime], deleted: bool = False) -> None:
    pods_seen(cluster=cluster, sights=[PodSight(pod, at, deleted) for pod, at in sights])


def listed(cluster: Cluster, *pods: PodFacts, version: int, at: datetime, **more: Any) -> None:
    pods_listed(cluster=cluster, pods=pods, version=version, asked_at=at, at=at, **more)


def lines(project: Project, dimension: Any = "deployment") -> dict[str, UsageLine]:
    with frozen(SEEN):
        found = usage_by(project=project, period_start=DAY, period_end=DAY + timedelta(days=1), dimension=dimension)
    return {line.key: line for line in found}


def rows() -> list[tuple[Any, ...]]:
    return sorted(
        GpuInterval.objects.values_list(
            "pod_uid", "resource_name", "devices", "started_at", "running_at", "ended_at", "end_basis", "uncertain_us"
        )
    )


def test_c01_finished_pods_free_their_device_and_stop_counting(cluster: Cluster, cast: Cast) -> None:
    done = facts(
        "a", phase="Succeeded", scheduled=clock("08:00:00"), finished=clock("09:00:00"), labels=labels(cast.project)
    )
    going = facts("b", scheduled=clock("08:00:00"), running=clock("08:00:00"), labels=labels(cast.project, "dep_b"))
    Cluster.objects.update(last_seen_at=clock("12:00:00"))
    for number in range(3):
        listed(cluster, done, going, version=50 + number, at=clock("12:00:00") + timedelta(days=number))
    assert bound_devices() == {(cluster.pk, "gpu-1"): {"nvidia.com/gpu": 1}}
    found = lines(cast.project)
    assert hours(found["dep_a"].slots_us) == 1
    assert hours(found["dep_b"].slots_us) == 4
    assert (found["dep_a"].open, found["dep_b"].open) == (False, True)


def test_c02_bound_holds_its_device_and_waiting_holds_none(cluster: Cluster, cast: Cast) -> None:
    bound = facts("a", phase="Pending", scheduled=clock("10:00:00"), waiting="ErrImagePull", labels=labels(cast.project))
    waiting = facts("b", phase="Pending", node="", labels=labels(cast.project, "dep_b"))
    watch(cluster, (bound, clock("10:00:01")), (waiting, clock("10:00:01")))
    assert bound_devices() == {(cluster.pk, "gpu-1"): {"nvidia.com/gpu": 1}}
    watch(cluster, (bound, clock("13:30:00")), (waiting, clock("13:30:00")), deleted=True)
    found = lines(cast.project)
    assert str(hours(found["dep_a"].slots_us)) == "3.5000"
    assert found["dep_a"].running_us == 0
    assert "dep_b" not in found
    assert bound_devices() == {}


@pytest.mark.parametrize("poll", [0, 30, 300, 900])
def test_c03_pod_shorter_than_poll(cluster: Cluster, cast: Cast, poll: int) -> None:
    start = {"devices": 8, "scheduled": clock("10:00:05"), "labels": labels(cast.project)}
    bound = facts("a", version=100, **start)
    done = facts("a", version=101, phase="Succeeded", running=clock("10:00:06"), finished=clock("10:00:47"), **start)
    events = [(bound, clock("10:00:05"), False), (done, clock("10:00:47"), False), (done, clock("10:00:50"), True)]
    look = clock("09:58:20")
    while events or look < clock("10:30:00"):
        if events and (not poll or events[0][1] <= look):
            pod, at, gone = events.pop(0)
            watch(cluster, (pod, at), deleted=gone)
            continue
        if look < clock("10:00:05"):
            listed(cluster, version=90, at=look)
        elif look < clock("10:00:47"):
            listed(cluster, bound, version=100, at=look)
        elif look < clock("10:00:50"):
            listed(cluster, done, version=101, at=look)
        else:
            listed(cluster, version=200, at=look)
        look += timedelta(seconds=poll or 10_000)
    line = lines(cast.project)["dep_a"]
    assert line.slots_us == 42 * 8 * 1_000_000
    assert str(hours(line.gpu_equiv_us or 0)) == "0.0933"
    assert line.running_us == 41 * 8 * 1_000_000


def test_c04_free_rises_at_the_end_not_at_the_eviction(cluster: Cluster, cast: Cast) -> None:
    base = {"devices": 2, "scheduled": clock("09:00:00"), "running": clock("09:00:05"), "labels": labels(cast.project)}
    preempted = ({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},)
    watch(cluster, (facts("a", version=1, **base), clock("09:00:01")))
    told = facts("a", version=2, deletion=clock("12:02:00"), conditions=preempted, **base)
    watch(cluster, (told, clock("12:00:00")))
    assert bound_devices()[cluster.pk, "gpu-1"] == {"nvidia.com/gpu": 2}
    ended = facts("a", version=3, phase="Failed", finished=clock("12:01:30"), deletion=clock("12:02:00"),
                  conditions=preempted, **base)  # fmt: skip
    watch(cluster, (ended, clock("12:01:30")))
    assert bound_devices() == {}
    watch(cluster, (ended, clock("12:01:31")), deleted=True)
    assert str(hours(lines(cast.project)["dep_a"].slots_us)) == "6.0500"
    assert GpuInterval.objects.get().end_reason == "preempted"


def test_c16_absence_closes_and_the_others_go_on_unbroken(cluster: Cluster, cast: Cast) -> None:
    a, b, c = (
        facts(uid, version=version, scheduled=clock("10:00:00"), labels=labels(cast.project, uid))
        for uid, version in (("a", 100), ("b", 101), ("c", 901))
    )
    listed(cluster, a, b, version=900, at=clock("10:05:00"))
    watch(cluster, (c, clock("10:06:00")))
    listed(cluster, a, c, version=950, at=clock("10:07:00"), covered_at=clock("10:06:00"))
    ends = dict(GpuInterval.objects.values_list("pod_uid", "ended_at"))
    assert ends == {"a": None, "b": clock("10:06:00"), "c": None}
    assert GpuInterval.objects.get(pod_uid="b").uncertain_us == 60_000_000
    assert GpuInterval.objects.count() == 3


def test_labels_prove_nothing_outside_their_projects_namespace(cluster: Cluster, cast: Cast) -> None:
    forged = facts("a", namespace="other", scheduled=clock("10:00:00"), labels=labels(cast.project))
    nowhere = facts("b", namespace="kube-system", scheduled=clock("10:00:00"), labels=labels(cast.project))
    plain = facts("c", namespace="lab", scheduled=clock("10:00:00"))
    watch(cluster, *((pod, clock("10:00:01")) for pod in (forged, nowhere, plain)))
    owners = {row.pod_uid: (row.project_id, row.consumer_id) for row in GpuInterval.objects.all()}
    assert owners == {"a": (cast.other_project.public_id, ""), "b": ("", ""), "c": (cast.project.public_id, "")}
    assert not ObservedPod.objects.exclude(owner_id="").exists()


def test_twice_is_once_whoever_collects(cluster: Cluster, cast: Cast) -> None:
    base = {"scheduled": clock("10:00:00"), "labels": labels(cast.project)}
    one, two = facts("a", version=5, **base), facts("a", version=7, phase="Succeeded", finished=clock("11:00:00"), **base)
    watch(cluster, (one, clock("10:00:01")), (two, clock("11:00:01")))
    before = rows()
    watch(cluster, (two, clock("12:00:01")), (one, clock("12:00:02")), (one, clock("12:00:02")))
    listed(cluster, two, version=20, at=clock("12:05:00"))
    listed(cluster, version=30, at=clock("12:10:00"))
    listed(cluster, version=40, at=clock("12:15:00"))
    watch(cluster, (two, clock("12:20:00")), deleted=True)
    assert rows() == before


def test_an_unchanged_pod_writes_no_interval(cluster: Cluster, cast: Cast, django_assert_max_num_queries: Any) -> None:
    pods = [facts(f"p{n}", scheduled=clock("10:00:00"), labels=labels(cast.project)) for n in range(50)]
    listed(cluster, *pods, version=20, at=clock("10:05:00"))
    with django_assert_max_num_queries(6):
        listed(cluster, *pods, version=30, at=clock("10:10:00"))
    assert set(ObservedPod.objects.values_list("observed_at", flat=True)) == {clock("10:10:00")}


def test_the_database_refuses_a_second_bill_of_the_same_pod(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", scheduled=clock("10:00:00")), clock("10:00:01")))
    interval = GpuInterval.objects.get()
    interval.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        interval.save(force_insert=True)


def test_k7_what_was_dropped_is_kept_as_a_finding(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", scheduled="0001-01-01T00:00:00Z", started=clock("10:00:00")), clock("10:00:01")))
    assert list(MeterAnomaly.objects.values_list("finding", flat=True)) == ["year_out_of_range"]
    assert GpuInterval.objects.get().started_at == clock("10:00:00")


def test_usage_splits_at_the_projects_midnight_and_sums_exactly(cluster: Cluster, cast: Cast) -> None:
    Project.objects.filter(pk=cast.project.pk).update(time_zone="Europe/Berlin")
    cast.project.refresh_from_db()
    base = {"labels": labels(cast.project), "phase": "Succeeded", "devices": 3}
    pod = facts("a", scheduled="2026-11-03T22:30:00.000001Z", finished=clock("23:15:00"), **base)
    watch(cluster, (pod, clock("23:20:00")))
    found = {key: line.slots_us for key, line in lines(cast.project, "day").items()}
    assert found == {"2026-11-03": 3 * (1_800_000_000 - 1), "2026-11-04": 3 * 900_000_000}
    assert lines(cast.project, "profile").keys() == {"h100"}
    assert lines(cast.project, "profile")["h100"].slots_us == sum(found.values())


def test_a_line_with_an_unknown_shape_is_unknown_not_zero(cluster: Cluster, cast: Cast) -> None:
    mig = facts("a", resource="nvidia.com/mig-1g.10gb", scheduled=clock("10:00:00"), labels=labels(cast.project))
    watch(cluster, (mig, clock("10:00:01")))
    line = lines(cast.project, "profile")["nvidia.com/mig-1g.10gb"]
    assert line.slots_us > 0
    assert line.gpu_equiv_us is None


def test_an_open_interval_counts_to_the_last_sight_of_its_cluster(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", scheduled=clock("10:00:00"), labels=labels(cast.project)), clock("10:00:01")))
    Cluster.objects.update(last_seen_at=clock("11:00:00"), reachable=False)
    assert hours(lines(cast.project)["dep_a"].slots_us) == 1


def test_one_projects_time_is_not_anothers(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", scheduled=clock("10:00:00"), labels=labels(cast.project)), clock("10:00:01")))
    assert lines(cast.other_project) == {}


def test_a_node_that_becomes_known_late_says_what_the_slots_are(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", node="gpu-2", scheduled=clock("10:00:00"), labels=labels(cast.project)), clock("10:00:01")))
    interval = GpuInterval.objects.get()
    assert (interval.profile_name, interval.gpu_equiv_ppm) == ("", None)
    late = NodeFacts(
        uid="late",
        name="gpu-2",
        version=5,
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        capacity={"nvidia.com/gpu": "8"},
        ready=True,
    )
    nodes_seen(cluster=cluster, nodes=[late], at=clock("10:00:02"))
    interval.refresh_from_db()
    assert (interval.profile_name, interval.gpu_equiv_ppm) == ("h100", 1_000_000)


def test_a_node_relabelled_later_rewrites_no_spent_hour(cluster: Cluster, cast: Cast) -> None:
    watch(cluster, (facts("a", version=1, scheduled=clock("10:00:00")), clock("10:00:01")))
    shared = NodeFacts(
        uid="node",
        name="gpu-1",
        version=9,
        labels={"nvidia.com/gpu.replicas": "4"},
        capacity={"nvidia.com/gpu": "32"},
        ready=True,
    )
    nodes_seen(cluster=cluster, nodes=[shared], at=clock("11:00:00"))
    done = facts("a", version=2, phase="Succeeded", scheduled=clock("10:00:00"), finished=clock("12:00:00"))
    watch(cluster, (done, clock("12:00:01")))
    interval = GpuInterval.objects.get()
    assert (interval.profile_name, interval.gpu_equiv_ppm) == ("h100", 1_000_000)


def test_news_of_an_owned_pod_asks_for_a_pass_and_a_proof_of_life_does_not(
    cluster: Cluster, cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    pod = facts("a", version=1, scheduled=clock("10:00:00"), labels=labels(cast.project))
    stranger = facts("b", version=1, scheduled=clock("10:00:00"))
    with django_capture_on_commit_callbacks() as asked:
        watch(cluster, (pod, clock("10:00:01")), (stranger, clock("10:00:01")))
    assert len(asked) == 1
    with django_capture_on_commit_callbacks() as asked:
        listed(cluster, pod, stranger, version=20, at=clock("10:05:00"))
    assert asked == []
    with django_capture_on_commit_callbacks() as asked:
        listed(cluster, stranger, version=30, at=clock("10:10:00"))
    assert len(asked) == 1


def test_thousands_of_pods_are_listed_in_seconds(cluster: Cluster, cast: Cast) -> None:
    pods = [
        facts(f"p{n}", version=n + 1, scheduled=clock("10:00:00"), running=clock("10:00:09"), labels=labels(cast.project))
        for n in range(2400)
    ]
    listed(cluster, *pods, version=5000, at=clock("10:05:00"))
    listed(cluster, *pods, version=6000, at=clock("10:10:00"))
    listed(cluster, *pods[:10], version=7000, at=clock("10:15:00"))
    assert GpuInterval.objects.filter(ended_at=None).count() == 10
    assert GpuInterval.objects.filter(ended_at=clock("10:10:00"), uncertain_us=300_000_000).count() == 2390
