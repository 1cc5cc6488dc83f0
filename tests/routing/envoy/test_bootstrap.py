"""Envoy as `make run` and docker-compose.yml start it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx

from deploy.envoy.__main__ import command
from deploy.envoy.bootstrap import CONTROL, bootstrap, write_bootstrap
from deploy.local.ports import free_port
from routing.authz.app import Gateway
from routing.authz.follower import Follower
from routing.domain.table import RouteTable
from routing.envoy import resources
from routing.envoy.discovery import door_of
from routing.envoy.resources import Door
from tests.routing.upstream import Server
from tests.waiting import eventually


async def nothing() -> RouteTable:
    return RouteTable(read_at=datetime.now(UTC))


def answers(url: str) -> int:
    try:
        return httpx.get(url, timeout=2).status_code
    except httpx.HTTPError:
        return 0


def test_an_envoy_that_starts_before_its_control_plane_opens_once_that_is_there(tmp_path: Path) -> None:
    door, admin, xds = free_port(), free_port(), free_port()
    control = Server(Gateway(Follower(nothing), Door()), "127.0.0.1", xds, lifespan="on")
    with (tmp_path / "log").open("wb") as log:
        envoy = subprocess.Popen(
            [
                *(sys.executable, "-m", "deploy.envoy", "--xds-port", str(xds), "--door-port", str(door)),
                *("--admin-port", str(admin), "--access-log", str(tmp_path / "logs" / "access.log")),
                *("--state", str(tmp_path / "state")),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        eventually(lambda: answers(f"http://127.0.0.1:{admin}/ready") == 503, what="Envoy runs and waits")
        assert answers(f"http://127.0.0.1:{door}/v1/models") == 0
        control.start()
        eventually(lambda: answers(f"http://127.0.0.1:{door}/v1/models") == 401, what="the door is open")
        assert answers(f"http://127.0.0.1:{admin}/ready") == 200
    finally:
        envoy.terminate()
        envoy.wait(20)
        control.stop()


def test_the_bootstrap_and_the_control_plane_agree(tmp_path: Path) -> None:
    written = write_bootstrap(
        tmp_path / "a" / "envoy.yaml", xds_port=1, admin_port=2, door_port=3, access_log=tmp_path / "b" / "access.log"
    )
    document = json.loads(written.read_text())
    assert (tmp_path / "b").is_dir()
    assert CONTROL == resources.CONTROL == document["static_resources"]["clusters"][0]["name"]
    door = door_of(document["node"], Door())
    assert (door.host, door.port, door.access_log) == ("127.0.0.1", 3, str(tmp_path / "b" / "access.log"))


def test_the_admin_port_is_on_loopback_wherever_the_door_is() -> None:
    document = bootstrap(xds_port=1, admin_port=2, door_port=3, access_log="/x", xds_host="gateway", host="::")
    assert document["admin"]["address"]["socket_address"]["address"] == "127.0.0.1"


def test_two_envoys_on_one_machine_share_no_memory() -> None:
    assert "--disable-hot-restart" in command(Path("x"))
