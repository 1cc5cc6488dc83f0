"""C38: browsers of allowed origins may call, others get no CORS header; refusals carry them too."""

from __future__ import annotations

import httpx
import pytest

from tests.routing.conftest import ORIGIN, TheDoor, chat, route, table
from tests.routing.test_door import CHAT
from tests.routing.upstream import Engine

ASKED = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}


@pytest.fixture
def anonymous(door: TheDoor) -> httpx.Client:
    return httpx.Client(base_url=door.url, timeout=10)


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v1/embeddings"])
def test_c38_preflight_without_a_key_from_an_allowed_origin(anonymous: httpx.Client, path: str) -> None:
    answer = anonymous.options(path, headers={"origin": ORIGIN, **ASKED})
    assert answer.status_code in {200, 204}
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = {name.strip() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type", "x-stainless-lang"} <= allowed
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", ["https://evil.example", f"{ORIGIN}.evil.example", "null", "http://notebook.example"])
def test_c38_preflight_from_another_origin_gets_no_cors_header(anonymous: httpx.Client, origin: str) -> None:
    answer = anonymous.options(CHAT, headers={"origin": origin, **ASKED})
    assert [name for name in answer.headers if name.startswith("access-control-")] == []


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models"), ("POST", CHAT), ("GET", "/v1/nothing")])
def test_c38_refusals_carry_cors_headers(anonymous: httpx.Client, method: str, path: str) -> None:
    answer = anonymous.request(method, path, headers={"origin": ORIGIN}, json=chat("x") if method == "POST" else None)
    assert answer.status_code in {401, 404}
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "x-request-id" in answer.headers["access-control-expose-headers"]


def test_c38_answers_carry_cors_headers(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    answer = client.post(CHAT, json=chat("a-chat"), headers={"origin": ORIGIN})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, ORIGIN)


def test_c38_head_of_models_behaves_as_get(anonymous: httpx.Client, client: httpx.Client, door: TheDoor) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat")))
    for caller in (anonymous, client):
        for path in ("/v1/models", "/v1/models/a-chat", "/v1/models/nope"):
            get, head = caller.get(path), caller.head(path)
            assert head.status_code == get.status_code
            assert head.headers["content-length"] == get.headers["content-length"]
            assert head.content == b""
