from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache
from django.db import transaction
from kombu.exceptions import OperationalError

from fleet.models import ProjectSpace
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work import hints
from tests.cast import make_cluster, make_organization, make_project


class Broker:
    """Stands where Celery's application does."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[str]]] = []
        self.error: Exception | None = None

    def send_task(self, name: str, *, args: list[str], **options: Any) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((name, args))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    broker = Broker()
    monkeypatch.setattr(hints, "current_app", broker)
    monkeypatch.setattr(hints, "_kinds", {})
    monkeypatch.setattr(hints, "_silence", hints._Silence())
    hints.register("thing", "app.tasks.thing_reconcile")
    cache.clear()
    yield broker
    cache.clear()


@pytest.mark.django_db(transaction=True)
def test_c30_a_hint_leaves_after_the_commit(broker: Broker) -> None:
    with transaction.atomic():
        hints.nudge("thing", "t_1")
        assert broker.sent == []
    assert broker.sent == [("app.tasks.thing_reconcile", ["t_1"])]


@pytest.mark.django_db(transaction=True)
def test_c30_nothing_is_hinted_for_what_was_rolled_back(broker: Broker) -> None:
    with transaction.atomic():
        hints.nudge("thing", "t_1")
        transaction.set_rollback(True)
    assert broker.sent == []


@pytest.mark.django_db(transaction=True)
def test_hints_for_one_row_are_one_until_its_pass_starts(broker: Broker) -> None:
    for _ in range(5):
        hints.nudge("thing", "t_1")
    hints.nudge("thing", "t_2")
    assert [args for _, args in broker.sent] == [["t_1"], ["t_2"]]
    hints.seen("thing", "t_1")
    hints.nudge("thing", "t_1")
    assert [args for _, args in broker.sent] == [["t_1"], ["t_2"], ["t_1"]]


def make_row(**fields: Any) -> ProjectSpace:
    project = make_project(make_organization(), slug="hinted")
    return ProjectSpace.objects.create(cluster=make_cluster(), project=project, namespace=project.namespace, **fields)


def due_at(row: ProjectSpace) -> datetime:
    with unscoped("test"):
        at: datetime = ProjectSpace.objects.get(pk=row.pk).next_attempt_at
    return at


@pytest.mark.django_db(transaction=True)
def test_a_nudge_makes_the_row_due_so_that_a_lost_message_costs_a_sweep_and_not_a_resync(broker: Broker) -> None:
    hints.register("thing", "app.tasks.thing_reconcile", ProjectSpace)
    later = now() + timedelta(minutes=10)
    row = make_row(next_attempt_at=later)
    broker.error = OperationalError("refused")
    with transaction.atomic():
        hints.nudge("thing", row.public_id)
        assert due_at(row) == later
    assert due_at(row) < now()


@pytest.mark.django_db(transaction=True)
def test_a_nudge_never_makes_a_row_wait_longer(broker: Broker) -> None:
    hints.register("thing", "app.tasks.thing_reconcile", ProjectSpace)
    long_ago = now() - timedelta(hours=1)
    row = make_row(next_attempt_at=long_ago)
    hints.nudge("thing", row.public_id)
    assert due_at(row) == long_ago


@pytest.mark.django_db(transaction=True)
def test_a_reminder_is_the_message_alone(broker: Broker) -> None:
    hints.register("thing", "app.tasks.thing_reconcile", ProjectSpace)
    later = now() + timedelta(minutes=10)
    row = make_row(next_attempt_at=later)
    hints.remind("thing", row.public_id)
    assert due_at(row) == later
    assert broker.sent == [("app.tasks.thing_reconcile", [row.public_id])]


@pytest.mark.django_db(transaction=True)
def test_a_kind_that_nobody_registered_is_ignored(broker: Broker) -> None:
    hints.nudge("forged", "t_1")
    assert broker.sent == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError("refused"), redis.ConnectionError("refused"), OSError("refused")])
def test_a_broker_that_is_down_stops_nobody(broker: Broker, error: Exception) -> None:
    broker.error = error
    with transaction.atomic():
        hints.nudge("thing", "t_1")
    assert broker.sent == []


@pytest.mark.django_db(transaction=True)
def test_a_hint_that_was_not_sent_does_not_hold_back_the_next(broker: Broker) -> None:
    broker.error = OperationalError("refused")
    hints.nudge("thing", "t_1")
    broker.error = None
    hints.nudge("thing", "t_1")
    assert broker.sent == [("app.tasks.thing_reconcile", ["t_1"])]


@pytest.mark.django_db(transaction=True)
def test_a_cache_that_is_down_stops_nobody(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise redis.ConnectionError("refused")

    monkeypatch.setattr(cache, "add", refuse)
    monkeypatch.setattr(cache, "delete", refuse)
    hints.nudge("thing", "t_1")
    hints.seen("thing", "t_1")


@pytest.mark.django_db(transaction=True)
def test_a_server_that_hangs_costs_one_timeout_and_not_one_for_each_hint(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"redis://127.0.0.1:{mute.getsockname()[1]}/0"
        monkeypatch.setattr(hints, "cache", RedisCache(address, {"OPTIONS": {"socket_timeout": 0.3}}))
        started = time.monotonic()
        for number in range(20):
            hints.nudge("thing", f"t_{number}")
            hints.seen("thing", f"t_{number}")
        assert time.monotonic() - started < 2
    assert broker.sent == []
