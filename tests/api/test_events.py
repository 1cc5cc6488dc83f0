"""Server-sent events behind all middleware, over a real ASGI server: each arrives when it happens (C34)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import pytest
import uvicorn
from django.core.asgi import get_asgi_application
from django.db import connections

from models_app.models import Deployment, StateChange
from portal.tenancy.models import unscoped
from portal.tenancy.services.tokens import token_create
from tests.api.conftest import Api
from tests.cast import actor_of
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[str]:
    """The whole web process's application in uvicorn; gives its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(get_asgi_application(), log_config=None, lifespan="off"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    eventually(lambda: running.started, what="uvicorn started")
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    running.should_exit = True
    running.force_exit = True
    thread.join(10)
    listener.close()


def _headers(user: Any, **more: str) -> dict[str, str]:
    _, secret = token_create(actor=actor_of(user), name="t", scopes=["read"], expires_in_days=1)
    return {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream", "Accept-Encoding": "gzip", **more}


def _step(deployment: Deployment, phase: str) -> StateChange:
    with unscoped("test"):
        return StateChange.objects.create(
            deployment=deployment, project_id=deployment.project_id, phase=phase, message=phase
        )


def _events(response: httpx.Response) -> Iterator[tuple[str, Any, str]]:
    name, event_id = "", ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("id: "):
            event_id = line.removeprefix("id: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: ")), event_id


def test_c34_events_arrive_one_by_one(server: str, cast: Any, deployment: Deployment) -> None:
    """Five events a second apart: the first byte at once, each event when it happens, not all at the end."""
    phases = ["admitted", "loading", "ready", "degraded", "ready"]
    stop = threading.Event()
    written: list[float] = []

    def write() -> None:
        for phase in phases:
            stop.wait(1.0)
            _step(deployment, phase)
            written.append(time.monotonic())
        connections.close_all()

    asked = time.monotonic()
    with httpx.stream(
        "GET", f"{server}/api/v1/deployments/{deployment.public_id}/events/", headers=_headers(cast.viewer), timeout=10
    ) as response:
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Content-Encoding"] == "identity"
        assert "no-transform" in response.headers["Cache-Control"]
        assert response.headers["X-Accel-Buffering"] == "no"
        assert "Content-Length" not in response.headers
        raw = response.iter_raw()
        assert next(raw).startswith(b"retry:")
        assert time.monotonic() - asked < 1.2
        writer = threading.Thread(target=write)
        writer.start()
        seen: list[tuple[str, float]] = []
        buffer = b""
        for chunk in raw:
            buffer += chunk
            while b"\n\n" in buffer:
                event, buffer = buffer.split(b"\n\n", 1)
                if b"event: state" in event:
                    data = next(line for line in event.split(b"\n") if line.startswith(b"data: "))
                    seen.append((json.loads(data[6:])["phase"], time.monotonic()))
            if len(seen) == len(phases):
                break
        writer.join()
    assert [phase for phase, _ in seen] == phases
    delays = [at - sent for (_, at), sent in zip(seen, written, strict=True)]
    assert max(delays) < 1.0, delays
    gaps = [later - earlier for (_, earlier), (_, later) in pairwise(seen)]
    assert all(0.4 < gap < 1.8 for gap in gaps), gaps


def test_a_client_that_reconnects_goes_on_where_it_was(server: str, cast: Any, deployment: Deployment) -> None:
    first, second, third = (_step(deployment, phase) for phase in ("admitted", "loading", "ready"))
    headers = _headers(cast.viewer, **{"Last-Event-ID": str(first.pk)})
    address = f"{server}/api/v1/deployments/{deployment.public_id}/events/"
    with httpx.stream("GET", address, headers=headers, timeout=10) as response:
        events = _events(response)
        assert [next(events)[2] for _ in range(2)] == [str(second.pk), str(third.pk)]


def test_a_change_of_the_row_and_its_end_are_told(server: str, cast: Any, deployment: Deployment) -> None:
    address = f"{server}/api/v1/deployments/{deployment.public_id}/events/"
    with httpx.stream("GET", address, headers=_headers(cast.viewer), timeout=10) as response:
        events = _events(response)
        waiter = threading.Event()
        waiter.wait(1.0)
        with unscoped("test"):
            Deployment.objects.update(generation=2, version=2)
        name, data, _ = next(events)
        assert (name, data["generation"]) == ("changed", 2)
        with unscoped("test"):
            Deployment.objects.update(archived_at=deployment.created_at)
        assert [name for name, _, _ in events][-1] == "gone"


def test_a_watcher_who_loses_the_right_is_cut_off(server: str, cast: Any, deployment: Deployment) -> None:
    address = f"{server}/api/v1/deployments/{deployment.public_id}/events/"
    with httpx.stream("GET", address, headers=_headers(cast.viewer), timeout=10) as response:
        assert response.status_code == 200
        cast.viewer.project_memberships.all().delete()
        assert list(_events(response)) == []


def test_a_stranger_gets_the_404_of_an_unknown_id_in_json(server: str, cast: Any, deployment: Deployment, api: Api) -> None:
    answers = [
        httpx.get(f"{server}/api/v1/deployments/{public_id}/events/", headers=_headers(cast.outsider), timeout=10)
        for public_id in (deployment.public_id, "dep_00000000000000000000")
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert answers[0].headers["Content-Type"] == "application/json"
