"""K8: replays, duplicates and any order of delivery leave the same evidence, hence the same interval and total."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.domain.evidence import Evidence, absent, deleted, seen
from fleet.domain.metering import pod_span
from fleet.domain.pods import PodFacts
from tests.fleet.pods import clock, facts


@dataclass(frozen=True)
class Sight:
    """One thing that a collector learnt of the pod: a version, its deletion, or a list that held it or not."""

    form: str
    version: int
    at: datetime
    pod: PodFacts | None = None


def told(evidence: Evidence | None, sight: Sight) -> Evidence | None:
    if sight.form == "absent":
        return absent(evidence, version=sight.version, at=sight.at) if evidence is not None else None
    assert sight.pod is not None
    if sight.form == "deleted":
        return deleted(evidence, sight.pod, at=sight.at)
    return seen(evidence, sight.pod, at=sight.at, version=sight.version if sight.form == "listed" else 0)


@st.composite
def histories(draw: st.DrawFn) -> list[Sight]:
    """A life of one pod, and some of what two collectors learn of it, in the order it happened."""
    bound = clock("10:00:00")
    steps = draw(st.lists(st.integers(1, 900), min_size=1, max_size=4))
    moments = [bound]
    for step in steps:
        moments.append(moments[-1] + timedelta(seconds=step))
    versions: list[PodFacts] = []
    for number, _ in enumerate(moments):
        last = number == len(moments) - 1
        terminal = last and draw(st.booleans())
        versions.append(
            facts(
                "p",
                version=10 * (number + 1),
                devices=2,
                scheduled=bound,
                running=moments[min(1, number)] if number else None,
                phase=draw(st.sampled_from(["Succeeded", "Failed"])) if terminal else "Running",
                **({"finished": draw(st.sampled_from([moments[-1], None]))} if terminal else {}),
            )
        )
    sights: list[Sight] = []
    for number, pod in enumerate(versions):
        following = moments[number + 1] if number + 1 < len(moments) else moments[number] + timedelta(seconds=100)
        for _ in range(draw(st.integers(0 if number else 1, 2))):
            at = moments[number] + (following - moments[number]) * draw(st.floats(0, 0.9))
            if draw(st.booleans()):
                sights.append(Sight("seen", pod.version, at, pod))
            else:
                sights.append(Sight("listed", pod.version + draw(st.integers(0, 9)), at, pod))
    gone = moments[-1] + timedelta(seconds=100)
    gone_version = 10 * (len(versions) + 1)
    if draw(st.booleans()):
        last = versions[-1]
        farewell = PodFacts(**{**{name: getattr(last, name) for name in last.__slots__}, "version": gone_version})
        sights.append(Sight("deleted", gone_version, gone, farewell))
    if draw(st.booleans()):
        sights.append(
            Sight("absent", gone_version + draw(st.integers(0, 5)), gone + timedelta(seconds=draw(st.integers(0, 60))))
        )
    return sights


def merged(sights: list[Sight]) -> Evidence | None:
    evidence: Evidence | None = None
    for sight in sights:
        evidence = told(evidence, sight)
    return evidence


@settings(max_examples=1500, deadline=None)
@given(history=histories(), data=st.data())
def test_k8_duplicates_replays_and_any_order_give_the_same_interval(history: list[Sight], data: st.DataObject) -> None:
    truth = merged(history)
    assert truth is not None
    again = data.draw(st.lists(st.sampled_from(history), max_size=6))
    shuffled = data.draw(st.permutations([*history, *again]))
    # An absence is learnt against what is known: before the first sight there is nothing to close.
    first = next(index for index, sight in enumerate(shuffled) if sight.form != "absent")
    delivered = [shuffled[first], *shuffled[:first], *shuffled[first + 1 :]]
    assert pod_span(merged(delivered)).span == pod_span(truth).span  # type: ignore[arg-type]


@settings(max_examples=500, deadline=None)
@given(history=histories(), data=st.data())
def test_k8_a_whole_second_run_later_changes_nothing(history: list[Sight], data: st.DataObject) -> None:
    """A collector that starts again replays old events with the time of the replay, after the pod is known to be gone."""
    truth = merged(history)
    assert truth is not None
    if truth.gone_at is None:
        return
    later = max(sight.at for sight in history) + timedelta(seconds=data.draw(st.integers(1, 10_000)))
    replay = [Sight(sight.form, sight.version, later, sight.pod) for sight in history]
    after = truth
    for sight in replay:
        after = told(after, sight)  # type: ignore[assignment]
    assert pod_span(after).span == pod_span(truth).span


def test_a_newer_version_wins_whatever_arrives_last() -> None:
    old, new = facts("p", version=9, phase="Pending"), facts("p", version=100, phase="Running")
    for order in ((old, new), (new, old)):
        evidence = None
        for pod in order:
            evidence = seen(evidence, pod, at=clock("10:00:00"))
        assert evidence is not None
        assert evidence.facts.phase == "Running"


def test_versions_are_numbers_not_texts() -> None:
    evidence = seen(seen(None, facts("p", version=9), at=clock("10:00:00")), facts("p", version=10), at=clock("10:00:01"))
    assert evidence.facts.version == 10
