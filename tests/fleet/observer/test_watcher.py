"""C16, C17, C18 from the byte on the wire to the interval: list and watch in trouble."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.cluster import ClusterError, Gone
from fleet.cluster.kube import KubeCluster
from fleet.domain.pods import PodFacts
from fleet.models import Cluster, CoverageGap, GpuInterval, ObservedObject, ObservedPod
from fleet.observer.kinds import PODS, WatchedKind
from fleet.observer.messages import Answered, Current, Listed, Lost, Message, Seen, facts_of
from fleet.observer.session import ClusterSession
from fleet.observer.watcher import RoundEnd, Watcher
from fleet.observer.writer import ClusterWriter
from portal.work.models import Heartbeat
from tests.cast import make_cluster
from tests.fleet.observer.scripted import EXPIRED, Script, bookmark, event, serving
from tests.fleet.pods import clock, raw_pod

pytestmark = pytest.mark.django_db

DEPLOYMENTS = WatchedKind("apps/v1", "Deployment")


class Observed:
    """A watcher and a writer on one cluster, driven by hand: each ``round`` is a list and a watch, stored."""

    def __init__(self, cluster: Cluster, port: KubeCluster, relist_seconds: int = 300) -> None:
        self.cluster = cluster
        self.told: list[Message] = []
        self.writer = ClusterWriter(cluster)
        self.watcher = Watcher(
            PODS,
            connect=lambda: port,
            tell=self.told.append,
            stop=threading.Event(),
            relist_seconds=relist_seconds,
        )

    def round(self) -> RoundEnd:
        before = len(self.told)
        try:
            return self.watcher.round()
        finally:
            self.writer.write(self.told[before:])

    def live(self) -> set[str]:
        return set(ObservedPod.objects.filter(cluster=self.cluster, gone_at=None).values_list("uid", flat=True))


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def observed(script: Script, tmp_path: Path) -> Iterator[Observed]:
    with serving(script, tmp_path) as port:
        yield Observed(make_cluster("lab"), port)


def pod(uid: str, version: int, **more: Any) -> dict[str, Any]:
    return raw_pod(uid, version=version, scheduled=clock("10:00:00"), running=clock("10:00:01"), **more)


def test_c16_after_410_it_lists_again_and_closes_by_absence_without_double_rows(script: Script, observed: Observed) -> None:
    a, b, c = pod("a", 500), pod("b", 10), pod("c", 901)
    script.list(a, b, version=900)
    script.watch(event("ADDED", c), {"type": "ERROR", "object": EXPIRED})
    script.list(a, c, version=950)
    script.watch(bookmark(951))
    assert observed.round() is RoundEnd.GONE
    assert observed.live() == {"a", "b", "c"}
    observed.round()
    assert [asked["resourceVersion"] for asked in script.asked if "watch" in asked] == ["900", "950"]
    assert observed.live() == {"a", "c"}
    closed = GpuInterval.objects.exclude(ended_at=None)
    assert list(closed.values_list("pod_uid", "end_basis")) == [("b", "last_evidence")]
    assert GpuInterval.objects.count() == 3


def test_c17_a_cut_line_is_a_gap_and_the_deletion_inside_it_is_found_by_the_next_list(
    script: Script, observed: Observed
) -> None:
    p, q = pod("p", 10), pod("q", 78)
    script.list(version=5)
    script.watch(event("ADDED", p), b'{"type":"DELETED","obj\n', bookmark(77), event("MODIFIED", q))
    script.list(q, version=80)
    script.watch(bookmark(81))
    assert observed.round() is RoundEnd.BAD_LINE
    observed.round()
    assert observed.live() == {"q"}


@pytest.mark.parametrize(
    "line", [b"\n", b"null\n", b"{}\n", b'{"type":"ADDED","object":null}\n', b"[1]\n", b'{"type":"ADDED"']
)
def test_c17_no_odd_line_crashes_and_each_leads_to_the_next_list(script: Script, observed: Observed, line: bytes) -> None:
    script.list(pod("p", 10), version=20)
    script.watch(line)
    assert observed.round() is RoundEnd.BAD_LINE
    assert observed.live() == {"p"}


def test_c17_a_bookmark_moves_no_pod_and_proves_that_the_watch_is_current(script: Script, observed: Observed) -> None:
    script.list(pod("p", 10), version=20)
    script.watch(bookmark(77))
    observed.round()
    assert [type(message) for message in observed.told] == [Listed, Current]
    listed, current = observed.told
    assert isinstance(current, Current)
    assert isinstance(listed, Listed)
    assert observed.writer.covered_at == current.at > listed.asked_at
    assert ObservedPod.objects.get().uid == "p"


def test_c17_a_silent_end_is_a_gap_and_listed_again(script: Script, observed: Observed) -> None:
    script.list(pod("p", 10), version=20)
    script.watch()
    assert observed.round() is RoundEnd.SILENT
    assert not [message for message in observed.told if isinstance(message, Current)]


def test_a_watch_that_ends_at_its_timer_proves_that_it_told_everything(script: Script, tmp_path: Path) -> None:
    script.list(pod("p", 10), version=20)
    script.watch()
    with serving(script, tmp_path) as port:
        observed = Observed(make_cluster("lab"), port, relist_seconds=1)
        assert observed.round() is RoundEnd.TIMER
    assert isinstance(observed.told[-1], Current)


def test_c18_a_list_whose_second_page_expires_closes_nothing(script: Script, observed: Observed) -> None:
    a, b, c = pod("a", 1), pod("b", 2), pod("c", 3)
    script.list(a, b, c, version=900)
    script.watch(bookmark(901))
    observed.round()
    for _ in range(3):
        script.list(a, version=950, more="x")
        script.expire_list("y")
    with pytest.raises(Gone):
        observed.round()
    assert observed.live() == {"a", "b", "c"}
    assert not GpuInterval.objects.exclude(ended_at=None).exists()


def test_c18_a_list_that_is_whole_at_the_second_try_is_believed(script: Script, observed: Observed) -> None:
    a, b = pod("a", 1), pod("b", 2)
    script.list(a, b, version=900)
    script.watch(bookmark(901))
    observed.round()
    script.list(a, version=950, more="x")
    script.expire_list("y")
    script.list(a, version=960, more="z")
    script.list(pod("c", 955), version=960)
    script.watch(bookmark(961))
    observed.round()
    assert observed.live() == {"a", "c"}


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_d3_a_refusal_is_no_empty_list(script: Script, observed: Observed, status: int) -> None:
    script.list(pod("a", 1), version=900)
    script.watch(bookmark(901))
    observed.round()
    script.refuse_list(status)
    script.refuse_list(status)
    with pytest.raises(ClusterError):
        observed.round()
    assert observed.live() == {"a"}


def test_a_deletion_seen_live_ends_the_interval_at_that_moment(script: Script, observed: Observed) -> None:
    script.list(pod("a", 1), version=900)
    script.watch(event("DELETED", pod("a", 905)))
    observed.round()
    interval = GpuInterval.objects.get()
    deletion = next(message for message in observed.told if isinstance(message, Seen))
    assert (interval.end_basis, interval.ended_at) == ("deleted_event", deletion.at)


def test_it_goes_on_after_every_failure_and_says_that_it_lost_the_cluster(script: Script, tmp_path: Path) -> None:
    script.refuse_list(403)
    script.list(pod("a", 1), version=900)
    script.watch(bookmark(901))
    stop = threading.Event()
    told: list[Message] = []

    def tell(message: Message) -> None:
        told.append(message)
        if isinstance(message, Current):
            stop.set()

    with serving(script, tmp_path) as port:
        Watcher(PODS, connect=lambda: port, tell=tell, stop=stop).run()
    assert [type(message) for message in told] == [Lost, Listed, Current]


def test_the_writer_reports_what_it_lost_and_what_it_regained() -> None:
    cluster = make_cluster("lab", last_seen_at=clock("10:00:00"), reachable=True)
    writer = ClusterWriter(cluster)
    writer.write([Listed(PODS, [], 5, clock("10:00:00"), clock("10:00:00"))])
    writer.report(clock("10:00:05"), backlog=0)
    writer.write([Lost(None, "refused", clock("10:00:10"))])
    for at in ("10:00:11", "10:00:31", "10:02:30"):
        writer.report(clock(at), backlog=0)
    cluster.refresh_from_db()
    assert (cluster.reachable, cluster.last_error) == (False, "refused")
    gap = CoverageGap.objects.get()
    assert (gap.started_at, gap.ended_at) == (clock("10:00:00"), None)
    writer.write([Listed(PODS, [], 9, clock("10:03:00"), clock("10:03:01"))])
    writer.report(clock("10:03:02"), backlog=0)
    cluster.refresh_from_db()
    gap.refresh_from_db()
    assert (cluster.reachable, cluster.last_error, cluster.last_seen_at) == (True, "", clock("10:03:01"))
    assert gap.ended_at == clock("10:03:00")


def test_a_kind_that_may_not_be_watched_is_a_warning_not_a_lost_cluster() -> None:
    cluster = make_cluster("lab")
    writer = ClusterWriter(cluster)
    writer.write([Answered(clock("10:00:00")), Listed(PODS, [], 5, clock("10:00:00"), clock("10:00:00"))])
    for at in ("10:00:30", "10:01:00", "10:01:30"):
        writer.write([Answered(clock(at)), Current(PODS, clock(at)), Lost(DEPLOYMENTS, "forbidden", clock(at))])
        writer.report(clock(at), backlog=3)
    cluster.refresh_from_db()
    assert (cluster.reachable, cluster.last_seen_at) == (True, clock("10:01:30"))
    beat = Heartbeat.objects.get(name="observer:lab")
    assert (beat.detail["warning"], beat.detail["backlog"]) == ("apps/v1/Deployment: forbidden", 3)
    assert not CoverageGap.objects.exists()


def deployment(uid: str, version: int, replicas: int, **labels: str) -> dict[str, Any]:
    stamps = {"slipway/managed": "true", "slipway/kind": "deployment", "slipway/id": "dep_a", "slipway/project": "prj_a"}
    metadata = {"uid": uid, "name": uid, "namespace": "lab", "resourceVersion": str(version), "labels": stamps | labels}
    return {"metadata": metadata, "spec": {"replicas": 9}, "status": {"readyReplicas": replicas, "note": "a\0b"}}


def test_other_kinds_are_stored_raw_newest_first_and_ended_by_a_whole_list() -> None:
    cluster = make_cluster("lab")
    writer = ClusterWriter(cluster)

    def told(*raws: dict[str, Any], deleted: bool = False) -> None:
        seen = [(facts_of(DEPLOYMENTS, raw), raw) for raw in raws]
        writer.write([Seen(DEPLOYMENTS, facts, deleted, clock("10:00:00")) for facts, _ in seen if facts is not None])

    told(deployment("a", 10, 1), deployment("a", 12, 2), deployment("b", 5, 0))
    told(deployment("a", 11, 7))
    row = ObservedObject.objects.get(uid="a")
    assert (row.status["readyReplicas"], row.owner_kind, row.owner_id) == (2, "deployment", "dep_a")
    assert row.status["note"] == "ab"
    told(deployment("a", 13, 2), deleted=True)
    told(deployment("a", 12, 2))
    assert set(ObservedObject.objects.filter(gone_at=None).values_list("uid", flat=True)) == {"b"}
    writer.write([Listed(DEPLOYMENTS, [], 4, clock("10:01:00"), clock("10:01:00"))])
    assert ObservedObject.objects.filter(gone_at=None).count() == 1
    writer.write([Listed(DEPLOYMENTS, [], 20, clock("10:02:00"), clock("10:02:00"))])
    assert not ObservedObject.objects.filter(gone_at=None).exists()


def test_what_the_database_refuses_is_passed_over_alone() -> None:
    """A poison object stops the meter for nobody else."""
    cluster = make_cluster("lab")
    session = ClusterSession(cluster, stop=threading.Event())
    good = [facts_of(PODS, pod(uid, 10)) for uid in ("a", "b", "c")]
    poison = facts_of(PODS, pod("x" * 60, 10))
    assert isinstance(poison, PodFacts)
    poison = replace(poison, node_name="n" * 300)
    messages = [Seen(PODS, facts, False, clock("10:00:00")) for facts in (good[0], poison, *good[1:]) if facts is not None]
    assert session._stored(list(messages))
    assert set(ObservedPod.objects.values_list("uid", flat=True)) == {"a", "b", "c"}
