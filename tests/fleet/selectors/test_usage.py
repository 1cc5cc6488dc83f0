"""Usage and intervals as a page reads them: exact, paged without loss, the same queries for few rows and many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.models import Cluster, GpuInterval, MeterAnomaly, ObservedPod
from fleet.selectors.usage import anomalies, interval_page, intervals, month_bounds, usage_by
from portal.kernel.clock import frozen
from portal.tenancy.models import Project
from tests.cast import Cast, make_cluster

pytestmark = pytest.mark.django_db

START = datetime(2026, 10, 24, tzinfo=UTC)
NOW = START + timedelta(days=10)


@pytest.fixture
def cluster(cast: Cast) -> Cluster:
    return make_cluster("lab", last_seen_at=NOW, reachable=True)


def held(
    cluster: Cluster, project: Project, number: int, start: datetime, seconds: float | None, **more: Any
) -> GpuInterval:
    """An interval; ``seconds`` None leaves it open."""
    fields: dict[str, Any] = {
        "cluster": cluster,
        "pod_uid": f"uid-{number}",
        "resource_name": "nvidia.com/gpu",
        "namespace": "lab",
        "pod_name": f"pod-{number}",
        "project_id": project.public_id,
        "consumer_kind": "deployment",
        "consumer_id": f"dep_{number % 3}",
        "profile_name": "h100",
        "devices": 1,
        "gpu_equiv_ppm": 1_000_000,
        "started_at": start,
        "start_basis": "pod_scheduled",
        "running_at": start,
        "ended_at": None if seconds is None else start + timedelta(seconds=seconds),
        "end_basis": "" if seconds is None else "container_finished",
    }
    return GpuInterval.objects.create(**{**fields, **more})


def used(project: Project, dimension: Any, start: datetime = START, end: datetime = NOW) -> dict[str, int]:
    with frozen(NOW):
        return {
            line.key: line.slots_us
            for line in usage_by(project=project, period_start=start, period_end=end, dimension=dimension)
        }


def test_periods_are_half_open_and_sums_are_exact(cluster: Cluster, cast: Cast) -> None:
    boundary = START + timedelta(days=1)
    held(cluster, cast.project, 1, boundary - timedelta(microseconds=3), 10, devices=3)
    before = used(cast.project, "deployment", START, boundary)
    after = used(cast.project, "deployment", boundary, NOW)
    assert before == {"dep_1": 9}
    assert after == {"dep_1": 3 * 10_000_000 - 9}


def test_a_period_that_touches_nothing_has_no_lines(cluster: Cluster, cast: Cast) -> None:
    held(cluster, cast.project, 1, START, 60)
    assert used(cast.project, "deployment", START + timedelta(seconds=60), NOW) == {}
    assert used(cast.project, "day", START - timedelta(days=3), START) == {}


def test_k6_a_day_of_25_hours_holds_25_hours(cluster: Cluster, cast: Cast) -> None:
    Project.objects.filter(pk=cast.project.pk).update(time_zone="Europe/Berlin")
    cast.project.refresh_from_db()
    held(cluster, cast.project, 1, START - timedelta(days=1), 5 * 86_400)
    days = used(cast.project, "day", START - timedelta(days=1), NOW)
    assert days["2026-10-25"] == 25 * 3_600_000_000
    assert days["2026-10-26"] == 24 * 3_600_000_000
    start, end = month_bounds(cast.project, START)
    assert (start, end) == (datetime(2026, 9, 30, 22, tzinfo=UTC), datetime(2026, 10, 31, 23, tzinfo=UTC))


def test_uncertain_time_is_beside_the_bill_in_the_period_of_the_end(cluster: Cluster, cast: Cast) -> None:
    held(cluster, cast.project, 1, START, 3600, devices=2, end_basis="last_evidence", uncertain_us=5_000_000)
    (line,) = usage_by(project=cast.project, period_start=START, period_end=NOW, dimension="deployment")
    assert (line.slots_us, line.uncertain_us, line.open, line.kind) == (2 * 3_600_000_000, 10_000_000, False, "deployment")


def test_running_time_is_a_second_column(cluster: Cluster, cast: Cast) -> None:
    held(cluster, cast.project, 1, START, 100, running_at=START + timedelta(seconds=40))
    held(cluster, cast.project, 4, START, 100, running_at=None)
    held(cluster, cast.project, 7, START, 100, running_at=START - timedelta(seconds=5))
    (line,) = usage_by(project=cast.project, period_start=START, period_end=NOW, dimension="deployment")
    assert (line.slots_us, line.running_us) == (300_000_000, 160_000_000)


def test_an_unreadable_zone_falls_back_to_utc(cluster: Cluster, cast: Cast) -> None:
    cast.project.time_zone = "Mars/Olympus"
    assert month_bounds(cast.project, START)[0] == datetime(2026, 10, 1, tzinfo=UTC)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 9 * 86_400_000_000), st.integers(0, 5 * 86_400_000_000), st.integers(1, 8), st.booleans()),
        max_size=8,
    ),
    cut=st.integers(1, 10 * 86_400_000_000 - 1),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)
def test_k5_every_way_to_cut_the_same_time_has_the_same_sum(
    cluster: Cluster, cast: Cast, spans: list[tuple[int, int, int, bool]], cut: int, zone: str
) -> None:
    GpuInterval.objects.all().delete()
    cast.project.time_zone = zone
    total = 0
    for number, (offset, length, devices, is_open) in enumerate(spans):
        start = START + timedelta(microseconds=offset)
        seconds = None if is_open else timedelta(microseconds=length).total_seconds()
        row = held(cluster, cast.project, number, start, None, devices=devices)
        if seconds is not None:
            GpuInterval.objects.filter(pk=row.pk).update(
                ended_at=start + timedelta(microseconds=length), end_basis="container_finished"
            )
        end = NOW if is_open else min(NOW, start + timedelta(microseconds=length))
        total += devices * ((end - start) // timedelta(microseconds=1))
    middle = START + timedelta(microseconds=cut)
    assert sum(used(cast.project, "deployment").values()) == total
    assert sum(used(cast.project, "profile").values()) == total
    assert sum(used(cast.project, "day").values()) == total
    parts = [used(cast.project, "day", START, middle), used(cast.project, "day", middle, NOW)]
    assert sum(sum(part.values()) for part in parts) == total


def test_pages_of_intervals_lose_and_repeat_nothing_with_equal_starts(cluster: Cluster, cast: Cast) -> None:
    for number in range(25):
        held(cluster, cast.project, number, START + timedelta(seconds=number // 10), 60)
    seen: list[int] = []
    after = None
    while True:
        page = interval_page(project=cast.project, period_start=START, period_end=NOW, after=after, limit=7)
        seen += [row.pk for row in page.rows]
        after = page.following
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 25
    found = intervals(project=cast.project, period_start=START, period_end=NOW)
    assert seen == [row.pk for row in found]


def test_the_rows_behind_a_figure_add_up_to_it(cluster: Cluster, cast: Cast) -> None:
    for number in range(9):
        held(cluster, cast.project, number, START + timedelta(minutes=number), 60 + number)
    for key, total in used(cast.project, "deployment").items():
        rows = intervals(project=cast.project, period_start=START, period_end=NOW, consumer_id=key)
        assert sum((row.ended_at - row.started_at) // timedelta(microseconds=1) for row in rows if row.ended_at) == total


def test_the_same_queries_for_few_rows_and_many(cluster: Cluster, cast: Cast, django_assert_num_queries: Any) -> None:
    for count in (2, 40):
        for number in range(count):
            held(cluster, cast.project, 1000 * count + number, START, 60)
        with django_assert_num_queries(1):
            used(cast.project, "day")
        with django_assert_num_queries(1):
            page = interval_page(project=cast.project, period_start=START, period_end=NOW)
            assert page.rows[0].cluster.name == "lab"


def test_anomalies_are_those_of_the_projects_own_pods(cluster: Cluster, cast: Cast) -> None:
    for uid, project in (("mine", cast.project), ("theirs", cast.other_project)):
        ObservedPod.objects.create(
            cluster=cluster, uid=uid, namespace="n", name=uid, project_id=project.public_id, resource_version="1",
            observed_at=START,
        )  # fmt: skip
        MeterAnomaly.objects.create(cluster=cluster, pod_uid=uid, finding="null_stamp", at=START)
    found = anomalies(project=cast.project, period_start=START, period_end=NOW)
    assert [row.pod_uid for row in found] == ["mine"]
