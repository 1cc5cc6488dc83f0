"""C39 on two real gateway processes and a real database: what ends a key is refused everywhere within 5 s."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from django.db import connection

from deploy.local.ports import free_port
from portal.audit.domain.actors import Actor
from portal.tenancy.models import ProjectState
from routing.services.keys import key_create, key_revoke
from tests.cast import Cast
from tests.waiting import eventually

BOUND_SECONDS = 5.0
MEMORY_BYTES = 150 * 1024 * 1024


class Processes:
    """Gateway processes as `make run` starts them, on the test's own database."""

    def __init__(self, folder: Path) -> None:
        database = connection.settings_dict
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings.gateway",
            "SLIPWAY_DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST']}",
        }
        self.ports = [free_port() for _ in range(2)]
        self._logs = [(folder / f"gateway-{port}.log").open("wb") for port in self.ports]
        self.running = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "uvicorn", "routing.authz.asgi:application", "--host", "127.0.0.1"),
                    *("--port", str(port), "--lifespan", "on", "--no-access-log", "--log-level", "warning"),
                ],
                env=environment,
                stdout=log,
                stderr=log,
            )
            for port, log in zip(self.ports, self._logs, strict=True)
        ]

    def statuses(self, secret: str) -> list[int]:
        """What each process answers this key."""
        headers = {"authorization": f"Bearer {secret}"}
        return [
            httpx.get(f"http://127.0.0.1:{port}/v1/models", headers=headers, timeout=5).status_code for port in self.ports
        ]

    def healthy(self) -> bool:
        try:
            return all(httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=2).status_code == 200 for port in self.ports)
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(15)
        for log in self._logs:
            log.close()


@pytest.fixture
def gateways(transactional_db: None, tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    try:
        eventually(processes.healthy, within=60, what="both gateway processes are healthy")
        yield processes
    finally:
        processes.stop()


def test_c39_what_ends_a_key_is_refused_on_every_process(
    transactional_db: None, gateways: Processes, cast: Cast, act: Callable[[str], Actor]
) -> None:
    key, secret = key_create(actor=act("member"), project=cast.project, name="k")
    of_admin, admin_secret = key_create(actor=act("org_admin"), project=cast.project, name="k")
    _, closing_secret = key_create(actor=act("outsider"), project=cast.other_project, name="k")
    for each in (secret, admin_secret, closing_secret):
        assert gateways.statuses(each) == [200, 200], "a key works on every process from the moment it is made"

    key_revoke(actor=act("lead"), public_id=key.public_id)
    key_revoke(actor=act("lead"), public_id=of_admin.public_id)
    cast.other_project.state = ProjectState.CLOSED.value
    cast.other_project.save()
    began = time.monotonic()
    for each in (secret, admin_secret, closing_secret):
        eventually(lambda each=each: gateways.statuses(each) == [401, 401], within=BOUND_SECONDS, every=0.05)
    assert time.monotonic() - began < BOUND_SECONDS

    for process in gateways.running:
        assert process.poll() is None
        assert psutil.Process(process.pid).memory_info().rss < MEMORY_BYTES


def test_a_gateway_that_loses_its_connections_goes_on_and_still_hears_of_revocations(
    transactional_db: None, gateways: Processes, cast: Cast, act: Callable[[str], Actor]
) -> None:
    key, secret = key_create(actor=act("member"), project=cast.project, name="k")
    assert gateways.statuses(secret) == [200, 200]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        assert cursor.fetchone()[0] >= 2
    assert gateways.statuses(secret) == [200, 200]
    key_revoke(actor=act("lead"), public_id=key.public_id)
    eventually(lambda: gateways.statuses(secret) == [401, 401], within=BOUND_SECONDS, every=0.05)
