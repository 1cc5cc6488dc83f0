"""Hints through the real Valkey and a real Celery worker; then with everything in Valkey lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from django.db import transaction

from fleet.cluster import placed
from fleet.models import ProjectSpace
from fleet.services.parts.spaces import space_ensure, space_touch
from fleet.tasks import space_reconcile, spaces_sweep
from portal.celery import app
from portal.tenancy.models import unscoped
from tests.cast import Cast, actor_of, make_cluster
from tests.cluster import eventually
from tests.fleet.cluster.fake import FakeCluster

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def valkey() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(settings.VALKEY_URL)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@contextmanager
def worker() -> Iterator[None]:
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=20):
        yield


def make_space(cast: Cast) -> ProjectSpace:
    with transaction.atomic():
        return space_ensure(actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential="valkey"))


def done(space: ProjectSpace, generation: int) -> bool:
    with unscoped("test"):
        row = ProjectSpace.objects.get(pk=space.pk)
    return row.observed_generation == generation


def test_a_commit_reaches_a_worker_without_waiting_for_a_sweep(cast: Cast, valkey: redis.Redis) -> None:
    fake = FakeCluster()
    with placed("valkey", fake), worker():
        space = make_space(cast)
        eventually(lambda: done(space, 1), within=10, what="the worker made the space")
        with transaction.atomic():
            space_touch(project=cast.project)
        eventually(lambda: done(space, 2), within=10, what="the worker followed the change")
    assert len(fake.objects()) == 7


def test_valkey_emptied_and_only_the_sweep_left(cast: Cast, valkey: redis.Redis) -> None:
    fake = FakeCluster()
    with placed("valkey", fake):
        space = make_space(cast)
        assert valkey.llen("celery") == 1
        valkey.flushdb()
        with worker():
            spaces_sweep.delay()
            eventually(lambda: done(space, 1), within=10, what="the sweep found the row")
    assert len(fake.objects()) == 7


def test_c29_a_message_delivered_many_times_makes_everything_once(cast: Cast, valkey: redis.Redis) -> None:
    fake = FakeCluster()
    with placed("valkey", fake):
        space = make_space(cast)
        for _ in range(20):
            space_reconcile.delay(space.public_id)
        with worker():
            eventually(lambda: valkey.llen("celery") == 0 and done(space, 1), within=15, what="all messages are done")
    assert len([call for call in fake.calls if call[0] == "apply"]) == 7
