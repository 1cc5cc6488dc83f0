"""A real Envoy that follows a real control plane in this process, in front of tiny real engines."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from deploy.envoy.__main__ import command
from deploy.envoy.bootstrap import write_bootstrap
from deploy.local.ports import free_port
from routing.authz.app import Gateway
from routing.authz.follower import Follower
from routing.domain.keys import digest
from routing.domain.table import Endpoint, Key, Route, RouteTable
from routing.envoy.resources import Door
from tests.routing.upstream import Engine, Server
from tests.waiting import eventually

SECRET_A = "slk_" + "a" * 40
SECRET_B = "slk_" + "b" * 40
ORIGIN = "https://notebook.example"
BODY_BYTES = 1024 * 1024
IDLE_SECONDS = 3


def table(*routes: Route, keys: dict[str, Key] | None = None) -> RouteTable:
    """A route table of now; by default key A of project ``prj_a`` and key B of ``prj_b``."""
    if keys is None:
        keys = {digest(SECRET_A): Key("key_a", "prj_a"), digest(SECRET_B): Key("key_b", "prj_b")}
    return RouteTable(read_at=datetime.now(UTC), routes=routes, keys=keys)


def route(deployment: str, project: str, model: str, *addresses: tuple[str, int], draining: bool = False) -> Route:
    return Route(deployment, project, model, 1, tuple(Endpoint(ip, port, draining) for ip, port in addresses))


def chat(model: str, **more: object) -> dict[str, object]:
    """The body of a chat call."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}


class TheDoor:
    """Envoy and what it follows. ``show`` puts a table in force; ``database_down`` makes each reading fail."""

    def __init__(self, folder: Path) -> None:
        self.table = table()
        self.database_down = False
        self.port, self.admin_port, self.xds_port = free_port(), free_port(), free_port()
        self.access_log = folder / "access.log"
        self.policy = Door(idle_seconds=IDLE_SECONDS, body_bytes=BODY_BYTES, origins=(ORIGIN,))
        self._config = write_bootstrap(
            folder / "envoy.yaml",
            xds_port=self.xds_port,
            admin_port=self.admin_port,
            door_port=self.port,
            access_log=self.access_log,
        )
        self._log = (folder / "envoy.log").open("wb")
        self.log_path = folder / "envoy.log"
        self.follower = Follower(self._read, period_seconds=0.1)
        self._envoy: subprocess.Popen[bytes] | None = None
        self.control = self._new_control()

    def _new_control(self) -> Server:
        return Server(Gateway(self.follower, self.policy), "127.0.0.1", self.xds_port, lifespan="on")

    async def _read(self) -> RouteTable:
        if self.database_down:
            raise OperationalError("the test took the database away")
        return dataclasses.replace(self.table, read_at=datetime.now(UTC))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.control.start()
        self._envoy = subprocess.Popen(command(self._config), stdout=self._log, stderr=self._log)
        eventually(self._listening, within=30, what="Envoy listens on the door")

    def stop(self) -> None:
        if self._envoy is not None:
            self._envoy.terminate()
            self._envoy.wait(20)
        self.control.stop()
        self._log.close()

    def restart_control(self) -> None:
        """Bring the control plane back, with nothing remembered, on its old port."""
        self.follower = Follower(self._read, period_seconds=0.1)
        self.control = self._new_control()
        self.control.start()

    def _listening(self) -> bool:
        try:
            return httpx.get(f"{self.url}/v1/models", timeout=2).status_code == 401
        except httpx.HTTPError:
            return False

    def show(self, new: RouteTable) -> None:
        """Put ``new`` in force and wait until both the control plane and Envoy have it."""
        self.table = new
        eventually(lambda: self.follower.table is not None and self.follower.table.routes == new.routes, within=5)
        eventually(lambda: self.follower.table is not None and self.follower.table.keys == new.keys, within=5)
        wanted = {one.deployment_id: {(e.ip, e.port, e.draining) for e in one.endpoints} for one in new.routes}
        eventually(lambda: self.upstreams() == wanted, within=10, what=f"Envoy has {wanted}, it has {self.upstreams()}")

    def upstreams(self) -> dict[str, set[tuple[str, int, bool]]]:
        """Deployment -> addresses with whether each drains, as Envoy has them now."""
        found: dict[str, set[tuple[str, int, bool]]] = {}
        for status in self._admin("clusters?format=json")["cluster_statuses"]:
            if status["name"] == "slipway_control":
                continue
            found[status["name"]] = {
                (
                    host["address"]["socket_address"]["address"],
                    host["address"]["socket_address"]["port_value"],
                    host["health_status"].get("eds_health_status") == "DRAINING",
                )
                for host in status.get("host_statuses", [])
            }
        return found

    def active(self, deployment: str) -> int:
        """Requests in flight to a deployment, by Envoy's own gauge."""
        return self._gauge(f"cluster.{deployment}.upstream_rq_active")

    def connections(self, deployment: str) -> int:
        """Open connections to a deployment's pods."""
        return self._gauge(f"cluster.{deployment}.upstream_cx_active")

    def _gauge(self, name: str) -> int:
        stats = self._admin(f"stats?format=json&filter=^{name}%24")["stats"]
        return int(next((stat["value"] for stat in stats if stat.get("name") == name), 0))

    def logged(self, request_id: str) -> dict[str, Any]:
        """The access-log line of one request, once Envoy has written it."""

        def find() -> dict[str, Any] | None:
            for line in self.access_log.read_text().splitlines():
                entry: dict[str, Any] = json.loads(line)
                if entry["request_id"] == request_id:
                    return entry
            return None

        found = eventually(find, within=15, what=f"an access-log line of {request_id}")
        assert found is not None
        return found

    def _admin(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"http://127.0.0.1:{self.admin_port}/{path}", timeout=5).json()
        return answer


@pytest.fixture(scope="session")
def the_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TheDoor]:
    door = TheDoor(tmp_path_factory.mktemp("door"))
    try:
        door.start()
        yield door
    finally:
        door.stop()


@pytest.fixture
def door(the_door: TheDoor) -> Iterator[TheDoor]:
    """The running door with an empty table; what a test showed is taken back."""
    the_door.database_down = False
    the_door.show(table())
    yield the_door
    the_door.database_down = False


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    """Two engines, each on an address of its own."""
    made = [Engine(host, free_port()) for host in ("127.0.0.1", "127.64.250.2")]
    for engine in made:
        engine.server.start()
    yield made
    for engine in made:
        engine.gate.set()
        engine.server.stop()


@pytest.fixture
def client(door: TheDoor) -> Iterator[httpx.Client]:
    """A plain HTTP client of the door with key A."""
    with httpx.Client(base_url=door.url, headers={"authorization": f"Bearer {SECRET_A}"}, timeout=30) as made:
        yield made
