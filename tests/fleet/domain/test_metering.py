"""K1, K7, K9: when a pod's hold on its devices starts and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.evidence import Evidence, absent, deleted, seen
from fleet.domain.findings import FindingKind
from fleet.domain.metering import EndBasis, Span, StartBasis, pod_span
from fleet.domain.pods import pod_facts
from portal.kernel.gpu_time import elapsed_us, hours
from tests.fleet.pods import clock, facts, raw_pod


def only(**fields: Any) -> Evidence:
    """The evidence of one sight."""
    at = fields.pop("at", clock("12:00:00"))
    return seen(None, facts("p", **fields), at=at)


def span_of(evidence: Evidence) -> Span:
    answer = pod_span(evidence)
    assert answer.span is not None
    return answer.span


def kinds(evidence: Evidence) -> set[FindingKind]:
    return {finding.kind for finding in pod_span(evidence).findings}


def test_c01_a_finished_pod_stops_counting_however_long_its_object_stays() -> None:
    finished = {"scheduled": clock("08:00:00"), "finished": clock("09:00:00"), "running": clock("08:00:10")}
    for phase in ("Succeeded", "Failed"):
        evidence = only(phase=phase, **finished)
        for day in range(8):
            evidence = seen(evidence, evidence.facts, at=clock("12:00:00") + timedelta(days=day))
        span = span_of(evidence)
        assert span.end is not None
        assert hours(elapsed_us(span.start, span.end)) == 1
        assert span.end_basis is EndBasis.CONTAINER_FINISHED


def test_c01_evicted_behaves_the_same() -> None:
    running = facts("p", version=10, scheduled=clock("08:00:00"), running=clock("08:00:10"))
    evicted = facts(
        "p",
        version=11,
        phase="Failed",
        reason="Evicted",
        scheduled=clock("08:00:00"),
        ready="False",
        ready_moved=clock("09:00:00"),
    )
    span = span_of(seen(seen(None, running, at=clock("08:30:00")), evicted, at=clock("09:00:01")))
    assert (span.end, span.end_basis, span.end_reason) == (clock("09:00:00"), EndBasis.READY_FALSE, "evicted")


def test_c02_bound_but_image_pull_failing_is_billed_until_its_deletion_and_never_ran() -> None:
    pod = facts("p", phase="Pending", scheduled=clock("10:00:00"), waiting="ErrImagePull", ready="False",
                ready_moved=clock("10:00:00"))  # fmt: skip
    span = span_of(deleted(seen(None, pod, at=clock("10:00:01")), pod, at=clock("13:30:00")))
    assert span.end is not None
    assert hours(elapsed_us(span.start, span.end)) == hours(3 * 3_600_000_000 + 1_800_000_000)
    assert (span.running_at, span.end_basis) == (None, EndBasis.DELETED_EVENT)


def test_c02_unschedulable_is_never_billed() -> None:
    pod = facts("p", phase="Pending", node="", started=clock("10:00:00"))
    assert pod_span(deleted(seen(None, pod, at=clock("10:00:01")), pod, at=clock("13:30:00"))).span is None


def test_c02_a_pod_that_failed_before_anything_ran_does_not_end_where_it_was_never_ready() -> None:
    pending = facts("p", version=1, phase="Pending", scheduled=clock("10:00:00"), waiting="ErrImagePull")
    failed = facts("p", version=2, phase="Failed", reason="DeadlineExceeded", scheduled=clock("10:00:00"), ready="False",
                   ready_moved=clock("10:00:00"))  # fmt: skip
    span = span_of(seen(seen(None, pending, at=clock("11:59:58")), failed, at=clock("12:00:00")))
    assert (span.end, span.end_basis) == (clock("11:59:58"), EndBasis.LAST_EVIDENCE)
    assert span.uncertain_us == 2_000_000


def test_c03_pod_shorter_than_poll_is_billed_to_the_second() -> None:
    bound = facts("p", version=1, devices=8, scheduled=clock("10:00:05"))
    done = facts("p", version=2, devices=8, phase="Succeeded", scheduled=clock("10:00:05"), finished=clock("10:00:47"))
    evidence = seen(seen(None, bound, at=clock("10:00:05")), done, at=clock("10:00:47"))
    span = span_of(deleted(evidence, done, at=clock("10:00:50")))
    assert span.end is not None
    assert elapsed_us(span.start, span.end) * 8 == 42 * 8 * 1_000_000
    assert str(hours(elapsed_us(span.start, span.end) * 8)) == "0.0933"


def test_c04_a_preempted_pod_holds_its_devices_through_its_grace() -> None:
    bound = facts("p", version=1, devices=2, scheduled=clock("09:00:00"), running=clock("09:00:05"))
    told = facts("p", version=2, devices=2, scheduled=clock("09:00:00"), running=clock("09:00:05"),
                 deletion=clock("12:02:00"))  # fmt: skip
    ended = facts(
        "p",
        version=3,
        devices=2,
        phase="Failed",
        scheduled=clock("09:00:00"),
        running=clock("09:00:05"),
        finished=clock("12:01:30"),
        deletion=clock("12:02:00"),
        conditions=({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},),
    )
    evidence = seen(seen(None, bound, at=clock("09:00:01")), told, at=clock("12:00:00"))
    assert span_of(evidence).end is None
    span = span_of(deleted(seen(evidence, ended, at=clock("12:01:30")), ended, at=clock("12:01:31")))
    assert span.end is not None
    assert elapsed_us(span.start, span.end) == 10_890 * 1_000_000
    assert hours(2 * elapsed_us(span.start, span.end)) == hours(21_780_000_000)
    assert span.end_reason == "preempted"


def test_start_falls_back_to_start_time() -> None:
    assert span_of(only(started=clock("10:00:00"))).start_basis is StartBasis.START_TIME
    span = span_of(only(scheduled=None, started=clock("10:00:00")))
    assert (span.start, span.start_basis) == (clock("10:00:00"), StartBasis.START_TIME)


def test_deletion_timestamp_alone_ends_nothing() -> None:
    assert span_of(only(scheduled=clock("10:00:00"), deletion=clock("11:00:00"))).end is None


def test_running_is_the_first_container_start_also_after_a_restart() -> None:
    first = only(version=1, scheduled=clock("10:00:00"), running=clock("10:05:00"))
    restarted = facts("p", version=2, scheduled=clock("10:00:00"), running=clock("11:00:00"))
    span = span_of(seen(first, restarted, at=clock("12:00:00")))
    assert span.running_at == clock("10:05:00")


def test_absence_ends_at_the_last_evidence_and_says_how_uncertain() -> None:
    evidence = only(version=10, scheduled=clock("10:00:00"), at=clock("11:00:00"))
    span = span_of(absent(evidence, version=20, at=clock("11:05:00")))
    assert (span.end, span.end_basis) == (clock("11:00:00"), EndBasis.LAST_EVIDENCE)
    assert span.uncertain_us == 300_000_000


def test_a_live_watch_is_evidence_up_to_its_last_proof() -> None:
    evidence = only(version=10, scheduled=clock("10:00:00"), at=clock("11:00:00"))
    span = span_of(absent(evidence, version=20, at=clock("11:05:00"), covered_at=clock("11:04:59")))
    assert (span.end, span.uncertain_us) == (clock("11:04:59"), 1_000_000)


def test_absence_from_an_older_list_says_nothing() -> None:
    evidence = only(version=30, scheduled=clock("10:00:00"), at=clock("11:00:00"))
    assert absent(evidence, version=20, at=clock("11:05:00")) == evidence


def test_a_deletion_that_was_seen_is_stronger_than_an_absence() -> None:
    pod = facts("p", version=10, scheduled=clock("10:00:00"))
    evidence = seen(None, pod, at=clock("11:00:00"))
    late = facts("p", version=15, scheduled=clock("10:00:00"))
    first = deleted(absent(evidence, version=20, at=clock("11:05:00")), late, at=clock("11:04:00"))
    second = absent(deleted(evidence, late, at=clock("11:04:00")), version=20, at=clock("11:05:00"))
    assert span_of(first) == span_of(second)
    assert (span_of(first).end, span_of(first).end_basis) == (clock("11:04:00"), EndBasis.DELETED_EVENT)


def test_k9_the_same_uid_after_an_outage_is_no_break() -> None:
    evidence = only(version=10, scheduled=clock("10:00:00"), at=clock("11:00:00"))
    back = seen(absent(evidence, version=20, at=clock("11:05:00")), evidence.facts, at=clock("11:10:00"), version=30)
    assert span_of(back).end is None
    assert span_of(back).start == clock("10:00:00")


@pytest.mark.parametrize(
    ("finished", "finding"),
    [
        (None, FindingKind.NULL_STAMP),
        ("0001-01-01T00:00:00Z", FindingKind.YEAR_OUT_OF_RANGE),
        ("1970-01-01T00:00:00Z", FindingKind.YEAR_OUT_OF_RANGE),
        ("9999-12-31T23:59:59Z", FindingKind.YEAR_OUT_OF_RANGE),
        ("2026-11-03T09:59:59Z", FindingKind.END_BEFORE_START),
        ("2031-01-01T00:00:00Z", FindingKind.END_IN_FUTURE),
        ("yesterday", FindingKind.UNREADABLE_STAMP),
    ],
)
def test_k7_invalid_end_stamps_are_dropped_and_flagged(finished: str | None, finding: FindingKind) -> None:
    running = only(version=1, scheduled=clock("10:00:00"), at=clock("11:59:00"))
    over = facts("p", version=2, phase="Failed", scheduled=clock("10:00:00"), finished=finished)
    evidence = seen(running, over, at=clock("12:00:00"))
    span = span_of(evidence)
    assert finding in kinds(evidence)
    assert (span.end, span.end_basis, span.uncertain_us) == (clock("11:59:00"), EndBasis.LAST_EVIDENCE, 60_000_000)


@pytest.mark.parametrize("scheduled", [None, "0001-01-01T00:00:00Z", "1999-12-31T23:59:59Z"])
def test_k7_invalid_start_stamps_are_dropped_and_flagged(scheduled: str | None) -> None:
    evidence = only(scheduled=scheduled, phase="Succeeded", finished=clock("11:00:00"))
    assert pod_span(evidence).span is None
    assert FindingKind.NO_START in kinds(evidence)


def test_one_bad_container_stamp_leaves_the_good_one() -> None:
    raw = raw_pod("p", phase="Failed", scheduled=clock("10:00:00"), finished=clock("11:00:00"), running=clock("10:00:01"))
    raw["status"]["containerStatuses"].append({"name": "other", "state": {"terminated": {"finishedAt": None}}})
    found = pod_facts(raw)
    assert found is not None
    evidence = seen(None, found, at=clock("12:00:00"))
    assert span_of(evidence).end == clock("11:00:00")
    assert FindingKind.NULL_STAMP in kinds(evidence)


def test_the_latest_container_ends_the_pod() -> None:
    raw = raw_pod("p", phase="Succeeded", scheduled=clock("10:00:00"), finished=clock("11:00:00"), running=clock("10:00:01"))
    raw["status"]["containerStatuses"].append(
        {"name": "other", "state": {"terminated": {"finishedAt": "2026-11-03T11:30:00.250000Z"}}}
    )
    found = pod_facts(raw)
    assert found is not None
    assert span_of(seen(None, found, at=clock("12:00:00"))).end == clock("11:30:00") + timedelta(milliseconds=250)


_instants = st.integers(0, (2110 - 1990) * 365 * 86_400).map(
    lambda seconds: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
_stamps = st.one_of(st.none(), st.just("junk"), st.just(7), _instants.map(lambda at: at.isoformat()))


@given(
    scheduled=_stamps,
    started=_stamps,
    finished=st.lists(_stamps, max_size=3),
    moved=_stamps,
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
    at=_instants,
    end=st.sampled_from(["none", "deleted", "absent"]),
)
def test_k7_whatever_the_stamps_no_interval_is_negative_or_outlives_what_was_seen(
    scheduled: Any, started: Any, finished: list[Any], moved: Any, phase: str, at: datetime, end: str
) -> None:
    pod = pod_facts(
        {
            "metadata": {"uid": "p", "resourceVersion": "5"},
            "spec": {"nodeName": "n", "containers": []},
            "status": {
                "phase": phase,
                "startTime": started,
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled},
                    {"type": "Ready", "status": "False", "lastTransitionTime": moved},
                ],
                "containerStatuses": [
                    {"state": {"terminated": {"startedAt": started, "finishedAt": one}}} for one in finished
                ],
            },
        }
    )
    assert pod is not None
    evidence = seen(None, pod, at=at)
    if end == "deleted":
        evidence = deleted(evidence, pod, at=at + timedelta(hours=1))
    if end == "absent":
        evidence = absent(evidence, version=9, at=at + timedelta(hours=1))
    span = pod_span(evidence).span
    if span is None:
        return
    assert 2000 <= span.start.year < 2100
    if span.end is not None:
        assert span.start <= span.end
        assert span.end == span.start or span.end <= at + timedelta(days=1, hours=1)
    assert span.uncertain_us >= 0
    assert (span.end is None) == (span.end_basis is None)
    assert (span.end is not None) == (evidence.facts.over or evidence.gone_at is not None)
