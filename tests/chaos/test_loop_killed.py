"""A worker process killed between apply and record, and a row that kills every worker (C32); a broker that is down."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from django.core.cache.backends.redis import RedisCache
from django.db import connection, transaction

from fleet.cluster import placed
from fleet.models import ProjectSpace
from fleet.reconcile.spaces import RECONCILER
from fleet.services.parts.spaces import space_ensure, space_touch
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.domain.outcomes import CRASHES_MAX
from portal.work.loop import Verdict, run_pass, settle, sweep
from tests.cast import Cast, actor_of, make_cluster
from tests.fleet.cluster.fake import FakeCluster

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]


def make_space(cast: Cast, credential: str) -> ProjectSpace:
    cast.project.namespace = f"sw-killed-{secrets.token_hex(4)}"
    cast.project.save(update_fields=["namespace"])
    with transaction.atomic():
        return space_ensure(actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential=credential))


def fresh(space: ProjectSpace) -> ProjectSpace:
    with unscoped("test"):
        row: ProjectSpace = ProjectSpace.objects.get(pk=space.pk)
    return row


def lease_ends(space: ProjectSpace) -> None:
    """As if LEASE_SECONDS had passed."""
    with unscoped("test"):
        ProjectSpace.objects.filter(pk=space.pk).update(
            lease_until=now() - timedelta(seconds=1), next_attempt_at=now() - timedelta(seconds=1)
        )


def killed_worker(space: ProjectSpace, method: str, number: int, when: str) -> None:
    """Run one in its own process, on the test's database, and see it die."""
    database = connection.settings_dict
    dsn = f"dbname={database['NAME']} user={database['USER']} host={database['HOST']} port={database['PORT'] or 5432}"
    environment = {
        **os.environ,
        "SLIPWAY_DATABASE_URL": dsn + (f" password={database['PASSWORD']}" if database["PASSWORD"] else ""),
        "DJANGO_SETTINGS_MODULE": "portal.settings.worker",
    }
    command = [sys.executable, "-m", "tests.chaos.killed_worker", space.public_id, method, str(number), when]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("method", "number", "when"),
    [("apply", 7, "after"), ("apply", 1, "after"), ("apply", 3, "before")],
)
def test_a_worker_killed_between_apply_and_record_leaves_nothing_behind(
    cast: Cast, cluster_credential: str, admin: Any, method: str, number: int, when: str
) -> None:
    space = make_space(cast, cluster_credential)
    killed_worker(space, method, number, when)
    row = fresh(space)
    assert (row.observed_generation, row.crashes) == (0, 1)
    assert row.lease_token is not None
    assert run_pass(RECONCILER) is None, "a lease holds until it ends"
    lease_ends(space)
    before = {item["metadata"]["name"]: item["metadata"]["uid"] for item in objects(admin, space)}
    settle(RECONCILER)
    row = fresh(space)
    assert (row.observed_generation, row.crashes, row.last_error) == (1, 0, "")
    after = {item["metadata"]["name"]: item["metadata"]["uid"] for item in objects(admin, space)}
    assert len(after) == 6
    assert before.items() <= after.items(), "what the dead worker had made was made again"


def objects(admin: Any, space: ProjectSpace) -> list[dict[str, Any]]:
    """What Slipway has in the namespace."""
    kinds = [
        ("v1", "ResourceQuota"),
        ("v1", "LimitRange"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ]
    return [item for version, kind in kinds for item in admin.items(version, kind, space.namespace)]


@pytest.mark.cluster
def test_c32_a_row_that_kills_every_worker_is_set_aside_and_comes_back_with_a_change(
    cast: Cast, cluster_credential: str
) -> None:
    space = make_space(cast, cluster_credential)
    with unscoped("test"):
        ProjectSpace.objects.filter(pk=space.pk).update(crashes=CRASHES_MAX - 2)
    for number in (CRASHES_MAX - 1, CRASHES_MAX):
        killed_worker(space, "get", 2, "before")
        assert fresh(space).crashes == number
        lease_ends(space)
    report = run_pass(RECONCILER)
    assert report is not None
    assert report.verdict == Verdict.SET_ASIDE
    assert "worker died" in fresh(space).set_aside_reason
    assert run_pass(RECONCILER) is None
    with transaction.atomic():
        space_touch(project=cast.project)
    settle(RECONCILER)
    assert (fresh(space).observed_generation, fresh(space).set_aside_reason) == (2, "")


@pytest.fixture
def broker_down(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """A Celery application and a cache whose server refuses connections."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{unused.getsockname()[1]}/0"
    app = Celery("down", broker=address, set_as_current=False)
    app.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    monkeypatch.setattr(hints, "current_app", app)
    monkeypatch.setattr(hints, "cache", RedisCache(address, {}))
    monkeypatch.setattr(hints, "_kinds", {})
    hints.register("space", "fleet.tasks.space_reconcile", ProjectSpace)


def test_a_broker_that_is_down_delays_work_and_loses_none(cast: Cast, broker_down: None) -> None:
    started = time.monotonic()
    space = make_space(cast, "down")
    assert time.monotonic() - started < 2, "a click waits for a dead broker"
    fake = FakeCluster()
    with placed("down", fake):
        assert sweep(RECONCILER) == 1
        settle(RECONCILER)
    assert fresh(space).observed_generation == 1
    assert len(fake.objects()) == 7


def test_only_the_cache_is_up_and_tasks_cannot_be_sent(
    cast: Cast, broker_down: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.cache import cache  # noqa: PLC0415 - the real one, which the fixture hid

    monkeypatch.setattr(hints, "cache", cache)
    started = time.monotonic()
    space = make_space(cast, "down")
    assert time.monotonic() - started < 2, "a click waits for a dead broker"
    sent: list[str] = []

    class Back:
        def send_task(self, name: str, *, args: list[str], **options: Any) -> None:
            sent.extend(args)

    monkeypatch.setattr(hints, "current_app", Back())
    sweep(RECONCILER)
    assert sent == [space.public_id], "a hint that was never sent holds back the next one"
