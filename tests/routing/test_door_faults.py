"""Faults at the door: each ends in an error the OpenAI client understands, and frees what it held."""

from __future__ import annotations

import socket
import threading

import httpx
import openai
import pytest
from openai import OpenAI

from deploy.local.ports import free_port
from tests.routing.conftest import IDLE_SECONDS, SECRET_A, TheDoor, chat, route, table
from tests.routing.test_door import CHAT, HELLO, error_of
from tests.routing.upstream import Engine
from tests.waiting import eventually


def test_an_engine_that_is_down_is_a_503_with_retry_after(client: httpx.Client, door: TheDoor) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", ("127.0.0.1", free_port()))))
    answer = client.post(CHAT, json=chat("a-chat"))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "model_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    with pytest.raises(openai.InternalServerError):
        OpenAI(base_url=f"{door.url}/v1", api_key=SECRET_A, max_retries=0).chat.completions.create(
            model="a-chat",
            messages=HELLO,  # type: ignore[arg-type]
        )


def test_one_dead_replica_of_two_is_not_seen_by_callers(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address, ("127.64.250.9", free_port()))))
    assert {client.post(CHAT, json=chat("a-chat")).status_code for _ in range(20)} == {200}


def test_a_model_without_a_ready_pod_is_503_and_stays_listed(client: httpx.Client, door: TheDoor) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat")))
    answer = client.post(CHAT, json=chat("a-chat"))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "model_not_ready")
    assert int(answer.headers["retry-after"]) > 0
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["a-chat"]


def test_a_route_envoy_has_not_heard_of_yet_is_a_503(client: httpx.Client, door: TheDoor) -> None:
    """The authz service may know a model a moment before Envoy has its cluster."""
    door.table = table(route("dep_new", "prj_a", "a-chat", ("127.0.0.1", free_port())))
    eventually(lambda: door.follower.table is not None and door.follower.table.routes, within=5, every=0.005)
    answer = client.post(CHAT, json=chat("a-chat"))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "model_not_ready")


def test_c41_an_upstream_that_hangs_ends_as_504_and_blocks_no_other(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(
        table(route("dep_1", "prj_a", "first", engines[0].address), route("dep_2", "prj_a", "second", engines[1].address))
    )
    for stream in (False, True):
        held: list[httpx.Response] = []

        def call(stream: bool = stream, held: list[httpx.Response] = held) -> None:
            headers = {"authorization": f"Bearer {SECRET_A}", "x-test": "hang"}
            held.append(httpx.post(f"{door.url}{CHAT}", json=chat("first", stream=stream), headers=headers, timeout=30))

        waiting = threading.Thread(target=call)
        waiting.start()
        eventually(lambda: engines[0].active == 1, within=5)
        assert door.active("dep_1") == 1
        assert client.post(CHAT, json=chat("second")).status_code == 200
        waiting.join(IDLE_SECONDS + 10)
        assert (held[0].status_code, error_of(held[0])["code"]) == (504, "timeout")
        eventually(lambda: engines[0].active == 0, within=1.5, every=0.02, what="the upstream connection is closed")
        assert door.active("dep_1") == 0


@pytest.mark.parametrize("stream", [False, True])
def test_c41_a_caller_that_leaves_frees_the_engine(door: TheDoor, engines: list[Engine], stream: bool) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    mode = "slow" if stream else "hang"
    headers = {"authorization": f"Bearer {SECRET_A}", "x-test": mode}
    with httpx.Client(timeout=0.5) as leaver:
        if stream:
            with leaver.stream("POST", f"{door.url}{CHAT}", json=chat("a-chat", stream=True), headers=headers) as answer:
                events = answer.iter_lines()
                assert len([next(events) for _ in range(3)]) == 3
                assert door.active("dep_a") == 1
        else:
            with pytest.raises(httpx.ReadTimeout):
                leaver.post(f"{door.url}{CHAT}", json=chat("a-chat"), headers=headers)
    eventually(lambda: engines[0].active == 0, within=1.0, every=0.02, what="the upstream connection is closed in 1 s")
    assert engines[0].cancelled == 1
    eventually(lambda: door.active("dep_a") == 0, within=1.0, every=0.02)


def test_a_stream_that_is_cut_is_visible_and_has_no_done(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    got: list[bytes] = []
    with client.stream("POST", CHAT, json=chat("a-chat", stream=True), headers={"x-test": "die"}) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            got.extend(answer.iter_bytes())
    assert b"[DONE]" not in b"".join(got)
    assert b"one" in b"".join(got)


def test_a_draining_pod_ends_its_stream_whole_and_gets_nothing_new(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    one, two = engines
    door.show(table(route("dep_a", "prj_a", "a-chat", one.address)))
    with client.stream("POST", CHAT, json=chat("a-chat", stream=True), headers={"x-test": "slow"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        draining = route("dep_a", "prj_a", "a-chat", one.address, draining=True)
        both = route("dep_a", "prj_a", "a-chat", two.address)
        door.show(table(type(both)("dep_a", "prj_a", "a-chat", 1, (*draining.endpoints, *both.endpoints))))
        for _ in range(10):
            assert httpx.post(f"{door.url}{CHAT}", json=chat("a-chat"), headers=client.headers).status_code == 200
        assert (len(one.seen), len(two.seen)) == (1, 10)
        assert door.active("dep_a") == 1
        one.gate.set()
        rest = list(lines)
    assert "data: [DONE]" in rest


def test_a_lone_draining_pod_gets_nothing_new(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    """Panic threshold 0 keeps Envoy from it (design §5)."""
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address, draining=True)))
    answer = client.post(CHAT, json=chat("a-chat"))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "model_not_ready")
    assert engines[0].seen == []


def test_a_removed_pod_ends_its_stream_whole(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    one, two = engines
    door.show(table(route("dep_a", "prj_a", "a-chat", one.address, two.address)))
    with client.stream("POST", CHAT, json=chat("a-chat", stream=True), headers={"x-test": "slow"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        busy, other = (one, two) if one.active else (two, one)
        door.show(table(route("dep_a", "prj_a", "a-chat", other.address)))
        assert httpx.post(f"{door.url}{CHAT}", json=chat("a-chat"), headers=client.headers).status_code == 200
        assert len(busy.seen) == 1
        busy.gate.set()
        assert "data: [DONE]" in list(lines)


def test_with_the_database_away_the_last_table_stands(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    door.database_down = True
    door.table = table()
    failing = door.follower.failures
    eventually(lambda: door.follower.failures >= failing + 2, within=10)
    assert client.post(CHAT, json=chat("a-chat")).status_code == 200
    door.database_down = False
    eventually(lambda: client.post(CHAT, json=chat("a-chat")).status_code == 404, within=5)


def test_with_the_control_plane_away_calls_are_refused_and_streams_go_on(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    with client.stream("POST", CHAT, json=chat("a-chat", stream=True), headers={"x-test": "slow"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        door.control.stop()
        try:
            refused = httpx.post(f"{door.url}{CHAT}", json=chat("a-chat"), headers=client.headers, timeout=10)
            assert (refused.status_code, error_of(refused)["code"]) == (503, "gateway_unavailable")
            assert int(refused.headers["retry-after"]) > 0
            engines[0].gate.set()
            assert "data: [DONE]" in list(lines)
        finally:
            door.restart_control()
    eventually(lambda: client.post(CHAT, json=chat("a-chat")).status_code == 200, within=10)


def test_a_connection_that_idled_is_not_reused_into_a_closing_engine(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    """Engines close idle connections after 5 s; Envoy lets go of them before."""
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    assert client.post(CHAT, json=chat("a-chat")).status_code == 200
    assert door.connections("dep_a") == 1
    eventually(lambda: door.connections("dep_a") == 0, within=4.5)
    assert client.post(CHAT, json=chat("a-chat")).status_code == 200


def test_a_broken_request_gets_an_openai_error(door: TheDoor) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=5) as raw:
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: nonsense\r\n\r\n")
        head = raw.recv(4096)
    assert head.startswith(b"HTTP/1.1 400")


def test_c39_a_stream_in_flight_ends_whole_when_its_key_is_revoked(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    served = route("dep_a", "prj_a", "a-chat", engines[0].address)
    door.show(table(served))
    with client.stream("POST", CHAT, json=chat("a-chat", stream=True), headers={"x-test": "slow"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        door.show(table(served, keys={}))
        refused = httpx.post(f"{door.url}{CHAT}", json=chat("a-chat"), headers=client.headers)
        assert (refused.status_code, error_of(refused)["code"]) == (401, "invalid_api_key")
        engines[0].gate.set()
        assert "data: [DONE]" in list(lines)
