"""The meter's Celery entry points: one task a cluster, and one that does not answer stops nothing."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings

import portal.celery  # noqa: F401 - the broker that tasks are sent to
from fleet import tasks
from fleet.models import GpuInterval, ObservedPod
from fleet.observer.meter import meter_pass
from fleet.selectors.coverage import covered_until
from fleet.services.coverage import cluster_covered
from fleet.services.observations import PodSight, pods_seen
from portal.work.models import Heartbeat
from tests.cast import make_cluster
from tests.fleet.pods import clock, facts

pytestmark = pytest.mark.django_db


def queued(task: str) -> list[list[Any]]:
    """Arguments of the messages of one task that wait in the broker, taken out of it."""
    broker = redis.Redis.from_url(settings.VALKEY_URL)
    messages = [json.loads(raw) for raw in broker.lrange("celery", 0, -1)]
    broker.delete("celery")
    return [json.loads(b64decode(one["body"]))[0] for one in messages if one["headers"]["task"] == task]


def test_the_sweep_asks_for_one_pass_a_cluster_and_none_of_a_disabled_one() -> None:
    queued("")
    one, two = make_cluster("one"), make_cluster("two")
    make_cluster("off", enabled=False)
    tasks.meter_sweep()
    assert sorted(queued("fleet.tasks.meter_cluster")) == sorted([[one.public_id], [two.public_id]])


def test_a_cluster_whose_credential_is_not_there_yet_is_lost_not_empty(tmp_path: Path, settings: Any) -> None:
    settings.CLUSTER_CREDENTIALS_DIR = tmp_path
    cluster = make_cluster("lab", reachable=True, last_seen_at=clock("10:00:00"))
    cluster_covered(cluster=cluster, source="observer", at=clock("10:00:00"), covered_at=clock("10:00:00"))
    pod = facts("a", scheduled=clock("09:00:00"))
    pods_seen(cluster=cluster, sights=[PodSight(pod, clock("10:00:00"))])
    tasks.meter_cluster(cluster.public_id)
    cluster.refresh_from_db()
    assert cluster.reachable is False
    assert "kubeconfig" in cluster.last_error
    assert GpuInterval.objects.get().ended_at is None
    assert ObservedPod.objects.get().gone_at is None
    assert covered_until(cluster) == clock("10:00:00")
    assert "kubeconfig" in Heartbeat.objects.get(name="meter:lab").detail["error"]


def test_a_cluster_that_is_no_longer_there_is_passed_over() -> None:
    assert meter_pass("clu_none") is False
    assert meter_pass(make_cluster("off", enabled=False).public_id) is False
