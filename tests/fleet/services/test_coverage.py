"""K9 and D3: silences are shown, short ones are not invented into gaps, and nothing is concluded from them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from fleet.models import Cluster
from fleet.selectors.coverage import Gap, covered_until, gaps
from fleet.services.coverage import cluster_covered, cluster_described, cluster_lost
from tests.cast import make_cluster
from tests.fleet.pods import DAY, clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster("lab")


def covered(cluster: Cluster, at: str, pods: str | None = None, source: str = "observer") -> None:
    cluster_covered(cluster=cluster, source=source, at=clock(at), covered_at=clock(pods or at))


def lost(cluster: Cluster, at: str, error: str = "refused") -> None:
    cluster_lost(cluster=cluster, source="observer", at=clock(at), error=error)


def found() -> list[Gap]:
    return gaps(period_start=DAY, period_end=DAY + timedelta(days=1))


def span(gap: Gap) -> tuple[datetime, datetime | None]:
    return gap.started_at, gap.ended_at


def test_the_first_look_is_no_gap(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    assert found() == []
    assert covered_until(cluster) == clock("10:00:00")


def test_bookmarks_a_minute_apart_are_no_gap(cluster: Cluster) -> None:
    for at in ("10:00:00", "10:01:05", "10:02:10"):
        covered(cluster, at)
    assert found() == []


def test_a_time_in_which_every_process_was_down_is_found_afterwards(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    covered(cluster, "11:00:00")
    (gap,) = found()
    assert span(gap) == (clock("10:00:00"), clock("11:00:00"))


def test_a_lost_cluster_opens_one_gap_and_its_return_closes_it(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    lost(cluster, "10:00:10")
    cluster.refresh_from_db()
    assert cluster.reachable is True
    lost(cluster, "10:01:00", "no route")
    cluster.refresh_from_db()
    assert (cluster.reachable, cluster.last_error) == (False, "no route")
    assert found() == []
    for at in ("10:02:30", "10:03:00"):
        lost(cluster, at, "no route")
    (gap,) = found()
    assert (*span(gap), gap.reason) == (clock("10:00:00"), None, "no route")
    covered(cluster, "10:05:00")
    cluster.refresh_from_db()
    assert (cluster.reachable, cluster.last_error, cluster.last_seen_at) == (True, "", clock("10:05:00"))
    assert [span(gap) for gap in found()] == [(clock("10:00:00"), clock("10:05:00"))]


def test_a_cluster_that_answers_and_shows_no_pods_is_reachable_and_not_covered(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    covered(cluster, "10:05:00", pods="10:00:00")
    cluster.refresh_from_db()
    assert cluster.reachable is True
    assert [span(gap) for gap in found()] == [(clock("10:00:00"), None)]


def test_the_meter_alone_covers_at_its_own_pace(cluster: Cluster) -> None:
    for at in ("10:00:00", "10:05:00", "10:10:00"):
        cluster_covered(cluster=cluster, source="meter", at=clock(at), covered_at=clock(at), longest=timedelta(minutes=12))
    assert found() == []


def test_what_one_source_covered_is_no_gap_of_the_other(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    covered(cluster, "10:01:30", source="meter")
    covered(cluster, "10:03:00")
    assert found() == []


def test_a_late_report_of_an_older_proof_moves_nothing_back(cluster: Cluster) -> None:
    covered(cluster, "10:05:00", source="meter")
    covered(cluster, "10:05:01", pods="10:04:00")
    assert covered_until(cluster) == clock("10:05:00")
    assert found() == []


def test_gaps_of_a_period(cluster: Cluster) -> None:
    covered(cluster, "10:00:00")
    covered(cluster, "11:00:00")
    assert gaps(period_start=clock("11:00:00"), period_end=clock("12:00:00")) == []
    assert gaps(period_start=clock("10:30:00"), period_end=clock("10:31:00"), cluster=cluster) != []
    assert gaps(period_start=DAY, period_end=DAY + timedelta(days=1), cluster=make_cluster("other")) == []


def test_a_cluster_says_what_it_is(cluster: Cluster) -> None:
    cluster_described(cluster=cluster, kubernetes_version="v1.37.0", installed_kinds=["v1/Pod", "apps/v1/Deployment"])
    cluster.refresh_from_db()
    assert (cluster.kubernetes_version, cluster.installed_kinds) == ("v1.37.0", ["apps/v1/Deployment", "v1/Pod"])
