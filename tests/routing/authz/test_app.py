"""The slim service by itself: what it answers before it knows anything, and what ends it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import OperationalError

from routing.authz.app import Gateway
from routing.authz.follower import Follower
from routing.domain.table import Route, RouteTable
from routing.envoy.resources import Door

Messages = list[MutableMapping[str, Any]]


def ask(gateway: Gateway, method: str, path: str, body: bytes = b"", *more: MutableMapping[str, Any]) -> tuple[int, bytes]:
    """One request to the application; ``more`` are messages after the body."""
    told: Messages = [{"type": "http.request", "body": body, "more_body": False}, *more]
    sent: Messages = []

    async def receive() -> MutableMapping[str, Any]:
        return told.pop(0) if told else await asyncio.get_running_loop().create_future()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    asyncio.run(asyncio.wait_for(gateway(scope, receive, send), 10))
    return (sent[0]["status"], sent[1]["body"]) if sent else (0, b"")


async def away() -> RouteTable:
    raise OperationalError("no database yet")


@pytest.fixture
def starting() -> Gateway:
    return Gateway(Follower(away), Door())


@pytest.fixture
def knowing() -> Gateway:
    async def read() -> RouteTable:
        return RouteTable(read_at=datetime.now(UTC), routes=(Route("dep_1", "prj_a", "one"),))

    follower = Follower(read)
    asyncio.run(follower.refresh())
    return Gateway(follower, Door())


@pytest.mark.parametrize("path", ["/authz/v1/chat/completions", "/v1/models", "/v1/models/x", "/healthz"])
def test_before_the_first_table_nobody_is_let_in_and_nobody_is_called_unknown(starting: Gateway, path: str) -> None:
    assert ask(starting, "POST" if "authz" in path else "GET", path)[0] == 503


def test_health_tells_the_age_of_what_is_known(knowing: Gateway) -> None:
    status, body = ask(knowing, "GET", "/healthz")
    assert status == 200
    told = json.loads(body)
    assert told["models"] == 1
    assert 0 <= told["routes_age_seconds"] < 30


def test_a_poll_gets_what_it_lacks(knowing: Gateway) -> None:
    status, body = ask(knowing, "POST", "/v3/discovery:clusters", b'{"node": {"id": "x"}}')
    assert status == 200
    assert [one["name"] for one in json.loads(body)["resources"]] == ["dep_1"]


def test_a_poll_is_dropped_when_its_envoy_has_gone(knowing: Gateway, starting: Gateway) -> None:
    gone = {"type": "http.disconnect"}
    assert ask(starting, "POST", "/v3/discovery:clusters", b"{}", gone) == (0, b"")
    _, body = ask(knowing, "POST", "/v3/discovery:clusters", b"{}")
    version = json.loads(body)["version_info"]
    held = json.dumps({"version_info": version}).encode()
    assert ask(knowing, "POST", "/v3/discovery:clusters", held, gone) == (0, b"")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"\xff"])
def test_a_poll_that_cannot_be_read_is_refused(knowing: Gateway, body: bytes) -> None:
    assert ask(knowing, "POST", "/v3/discovery:clusters", body)[0] == 400


def test_an_unknown_kind_of_poll_is_refused(knowing: Gateway) -> None:
    assert ask(knowing, "POST", "/v3/discovery:secrets", b"{}")[0] == 404


def test_a_node_with_an_impossible_door_is_refused(knowing: Gateway) -> None:
    body = b'{"node": {"metadata": {"slipway": {"port": 0}}}}'
    assert ask(knowing, "POST", "/v3/discovery:listeners", body)[0] == 400


def test_a_process_that_cannot_follow_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", raised.append)

    async def broken() -> RouteTable:
        raise ValueError("a row that no rule foresaw")

    async def scenario() -> None:
        ended = asyncio.Event()
        told: Messages = [{"type": "lifespan.startup"}]

        async def receive() -> MutableMapping[str, Any]:
            if told:
                return told.pop(0)
            await ended.wait()
            return {"type": "lifespan.shutdown"}

        async def send(message: MutableMapping[str, Any]) -> None:
            return None

        serving = asyncio.create_task(Gateway(Follower(broken), Door())({"type": "lifespan"}, receive, send))
        await asyncio.wait({serving}, timeout=0.2)
        ended.set()
        await serving

    asyncio.run(scenario())
    assert raised == [signal.SIGTERM]
