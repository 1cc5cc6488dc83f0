"""K8 on real Postgres: one fleet's day, delivered whole, twice, torn and shuffled between watch and list, bills the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.domain.pods import PodFacts
from fleet.models import Cluster, GpuInterval, MeterAnomaly, ObservedPod
from fleet.services.observations import PodSight, pods_listed, pods_seen
from tests.cast import make_cluster
from tests.fleet.pods import clock, facts

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Day:
    """``sights`` in the order they happened; ``lists`` as (version, at, pods that stood in it)."""

    sights: list[PodSight]
    lists: list[tuple[int, datetime, list[PodFacts]]]


def a_day(pods: int, dice: random.Random) -> Day:
    """Pods that are bound, run, end or are cut off; every version of every pod, and a list now and then."""
    changes: list[tuple[datetime, str, dict[str, Any]]] = []
    for number in range(pods):
        uid = f"pod-{number}"
        bound = clock("08:00:00") + timedelta(seconds=dice.randrange(20_000))
        running = bound + timedelta(seconds=dice.randrange(1, 60))
        end = running + timedelta(seconds=dice.randrange(1, 9_000))
        base = {"scheduled": bound, "devices": dice.randrange(1, 9)}
        changes.append((bound, uid, {"phase": "Pending", **base}))
        changes.append((running, uid, {"running": running, **base}))
        fate = dice.choice(["ends", "lingers", "killed", "lives"])
        if fate in ("ends", "lingers"):
            stamp = end if dice.random() < 0.8 else None
            changes.append((end, uid, {"phase": "Succeeded", "running": running, "finished": stamp, **base}))
        if fate in ("ends", "killed"):
            changes.append((end + timedelta(seconds=dice.randrange(1, 90)), uid, {}))
    changes.sort(key=lambda change: (change[0], change[1]))
    version, there = 100, dict[str, PodFacts]()
    day = Day([], [])
    look = clock("08:30:00")
    for at, uid, fields in changes:
        while look < at:
            day.lists.append((version, look, list(there.values())))
            look += timedelta(minutes=20)
        version += 1
        if fields:
            there[uid] = facts(uid, version=version, **fields)
            day.sights.append(PodSight(there[uid], at))
        else:
            last = there.pop(uid)
            gone = PodFacts(**{name: getattr(last, name) for name in last.__slots__} | {"version": version})
            day.sights.append(PodSight(gone, at, deleted=True))
    return day


def bill() -> list[tuple[Any, ...]]:
    return sorted(
        GpuInterval.objects.values_list(
            "pod_uid", "devices", "started_at", "running_at", "ended_at", "end_basis", "end_reason", "uncertain_us"
        )
    )


def listed(cluster: Cluster, listing: tuple[int, datetime, list[PodFacts]]) -> None:
    version, at, pods = listing
    pods_listed(cluster=cluster, pods=pods, version=version, asked_at=at, at=at)


def merged_in_order(cluster: Cluster, day: Day) -> None:
    """As it happened: each list where it belongs between the events."""
    lists = list(day.lists)
    for sight in day.sights:
        while lists and lists[0][1] < sight.at:
            listed(cluster, lists.pop(0))
        pods_seen(cluster=cluster, sights=[sight])


def torn(things: Sequence[Any], dice: random.Random) -> list[Sequence[Any]]:
    parts, left = [], list(things)
    while left:
        size = dice.randrange(1, 12)
        parts.append(left[:size])
        left = left[size:]
    return parts


@pytest.mark.parametrize("seed", range(6))
def test_k8_shuffled_duplicated_and_torn_deliveries_bill_the_same(seed: int) -> None:
    dice = random.Random(seed)
    day = a_day(25, dice)
    first = make_cluster("first")
    merged_in_order(first, day)
    truth = bill()
    assert len(truth) == 25
    GpuInterval.objects.all().delete()
    second = make_cluster("second")
    sights = [*day.sights, *dice.sample(day.sights, len(day.sights) // 2)]
    dice.shuffle(sights)
    work: list[tuple[str, Any]] = [("events", part) for part in torn(sights, dice)]
    work += [("list", listing) for listing in day.lists] + [("list", dice.choice(day.lists)) for _ in range(3)]
    dice.shuffle(work)
    for form, content in work:
        if form == "events":
            pods_seen(cluster=second, sights=content)
        else:
            listed(second, content)
    assert bill() == truth


@pytest.mark.parametrize("seed", range(3))
def test_k8_a_second_run_of_the_collector_over_the_same_day_changes_no_row(seed: int) -> None:
    dice = random.Random(100 + seed)
    day = a_day(25, dice)
    cluster = make_cluster("it")
    merged_in_order(cluster, day)
    truth, found = bill(), MeterAnomaly.objects.count()
    recorded = set(GpuInterval.objects.values_list("id", "recorded_at"))
    merged_in_order(cluster, day)
    pods_seen(cluster=cluster, sights=list(reversed(day.sights)))
    assert bill() == truth
    assert MeterAnomaly.objects.count() == found
    assert set(GpuInterval.objects.values_list("id", "recorded_at")) == recorded


@pytest.mark.parametrize("seed", range(3))
def test_k9_with_the_watch_down_for_hours_the_lists_alone_find_every_end_that_left_a_trace(seed: int) -> None:
    dice = random.Random(200 + seed)
    day = a_day(25, dice)
    watched, lists_only = make_cluster("watched"), make_cluster("lists")
    merged_in_order(watched, day)
    truth = {row[0]: row for row in bill()}
    GpuInterval.objects.all().delete()
    for listing in day.lists:
        listed(lists_only, listing)
    for row in bill():
        uid, devices, start, *_, end, basis, _, uncertain = row
        assert (devices, start) == truth[uid][1:3]
        if basis == "container_finished":
            assert end == truth[uid][4]
        if basis == "last_evidence" and truth[uid][5] == "deleted_event":
            assert end <= truth[uid][4] <= end + timedelta(microseconds=uncertain)
    assert ObservedPod.objects.filter(cluster=lists_only).exists()
