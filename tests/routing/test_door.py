"""The door end to end: real Envoy, real xDS, real authz, the official OpenAI client."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import httpx
import openai
import pytest
from openai import OpenAI

from routing.domain.keys import digest
from routing.domain.table import Key
from tests.routing.conftest import BODY_BYTES, SECRET_A, SECRET_B, TheDoor, chat, route, table
from tests.routing.upstream import TOOL_CALLS, Engine, chunks

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hi"}]


def sdk(door: TheDoor, secret: str = SECRET_A) -> OpenAI:
    return OpenAI(base_url=f"{door.url}/v1", api_key=secret, max_retries=0, timeout=20)


def error_of(answer: httpx.Response) -> dict[str, str | None]:
    """The OpenAI error of an answer, held to its shape (G3)."""
    assert answer.headers["content-type"] == "application/json", answer.text
    error: dict[str, str | None] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return error


def test_the_openai_client_streams_through_the_door(door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    stream = sdk(door).chat.completions.create(model="a-chat", messages=HELLO, stream=True)  # type: ignore[arg-type]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "one two three"  # type: ignore[union-attr]


def test_the_openai_client_gets_a_plain_answer(door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    answer = sdk(door).chat.completions.create(model="a-chat", messages=HELLO)  # type: ignore[arg-type]
    assert answer.choices[0].message.content == "one two three"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 4


def test_upstream_bytes_are_relayed_unchanged(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    sent = json.dumps(chat("a-chat", stream=True, note="é\u2028"), ensure_ascii=False).encode()
    answer = client.post(CHAT, content=sent, headers={"content-type": "application/json; charset=utf-8"})
    assert answer.content == b"".join(chunks("a-chat")) + b"data: [DONE]\n\n"
    assert answer.headers["content-type"] == "text/event-stream"
    assert engines[0].seen[0]["body"] == sent


def test_c47_tool_calls_in_a_stream_keep_index_and_finish_reason(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    answer = client.post(CHAT, json=chat("a-chat", stream=True), headers={"x-test": "tools"})
    assert answer.content == b"".join(chunks("a-chat", tools=True)) + b"data: [DONE]\n\n"
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    calls = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert calls == TOOL_CALLS
    assert "".join(c["function"]["arguments"] for c in calls if c["index"] == 0) == '{"x":1}'
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_each_model_goes_to_its_own_pods(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(
        table(route("dep_1", "prj_a", "first", engines[0].address), route("dep_2", "prj_a", "second", engines[1].address))
    )
    for model in ("first", "second", "second"):
        assert client.post(CHAT, json=chat(model)).status_code == 200
    assert [len(engine.seen) for engine in engines] == [1, 2]


def test_two_projects_may_use_one_name_each_for_its_own(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(
        table(route("dep_1", "prj_a", "chat", engines[0].address), route("dep_2", "prj_b", "chat", engines[1].address))
    )
    assert client.post(CHAT, json=chat("chat")).status_code == 200
    assert client.post(CHAT, json=chat("chat"), headers={"authorization": f"Bearer {SECRET_B}"}).status_code == 200
    assert [len(engine.seen) for engine in engines] == [1, 1]


def test_replicas_share_the_calls(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address, engines[1].address)))
    for _ in range(20):
        assert client.post(CHAT, json=chat("a-chat")).status_code == 200
    assert min(len(engine.seen) for engine in engines) >= 3


def test_the_engine_sees_neither_key_nor_inner_headers(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    forged = {"x-slipway-key": "key_b", "x-slipway-project": "prj_b", "x-envoy-upstream-rq-timeout-ms": "1", "cookie": "a=b"}
    assert client.post(CHAT, json=chat("a-chat"), headers=forged).status_code == 200
    seen = engines[0].seen[0]["headers"]
    assert [name for name in seen if name.startswith("x-slipway") or name in {"authorization", "cookie"}] == []
    assert "x-envoy-upstream-rq-timeout-ms" not in seen
    assert SECRET_A not in json.dumps(seen)


def test_a_forged_route_header_leads_nowhere(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(
        table(route("dep_a", "prj_a", "a-chat", engines[0].address), route("dep_b", "prj_b", "b-chat", engines[1].address))
    )
    forged = {"x-slipway-route": "dep_b", "x-slipway-model": "b-chat", "X_Slipway_Route": "dep_b"}
    assert client.post(CHAT, json=chat("a-chat"), headers=forged).status_code == 200
    assert client.post(CHAT, json={"messages": []}, headers=forged).status_code == 400
    assert [len(engine.seen) for engine in engines] == [1, 0]


@pytest.mark.parametrize(
    "name",
    ["x\r\nauthorization: Bearer stolen", "x\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n", "a b", "\u00e9", "x" * 201, "\x00"],
)
def test_a_model_name_cannot_become_another_header(
    client: httpx.Client, door: TheDoor, engines: list[Engine], name: str
) -> None:
    door.show(table(route("dep_a", "prj_a", "x", engines[0].address)))
    answer = client.post(CHAT, json=chat(name))
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_model")
    assert client.post(CHAT, json=chat("x")).status_code == 200


@pytest.mark.parametrize("value", [5, True, None, ["x"], {"a": 1}, ""])
def test_a_model_that_is_no_text_is_refused(client: httpx.Client, door: TheDoor, value: object) -> None:
    answer = client.post(CHAT, json={"model": value, "messages": []})
    assert answer.status_code in {400, 404}
    assert error_of(answer)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b'{"messages": []}', "application/json", "missing_model"),
        (b'{"model": "a-ch', "application/json", "invalid_json"),
        (b"", "application/json", "missing_model"),
        (b"model=a-chat", "application/x-www-form-urlencoded", "missing_model"),
        (b'["model"]', "application/json", "missing_model"),
    ],
)
def test_a_body_without_a_model_is_told_what_is_missing(
    client: httpx.Client, body: bytes, content_type: str, code: str
) -> None:
    answer = client.post(CHAT, content=body, headers={"content-type": content_type})
    assert answer.status_code == 400
    assert error_of(answer)["code"] in {code, "invalid_json"}


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/models", "/slots", "/metrics", "/healthz", "/authz/v1/models", "/v3/discovery:clusters"]
)
def test_nothing_else_is_behind_the_door(client: httpx.Client, path: str) -> None:
    for method in ("GET", "POST"):
        answer = client.request(method, path)
        assert (answer.status_code, error_of(answer)["code"]) == (404, "unknown_url")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/../../v3/discovery:clusters",
        "/v1/models/%2e%2e/%2e%2e/healthz",
        "//v3/discovery:clusters",
        "/v1/models/..%2f..%2fhealthz",
    ],
)
def test_no_path_climbs_to_the_control_plane(client: httpx.Client, door: TheDoor, path: str) -> None:
    request = client.build_request("GET", "/")
    request.url = httpx.URL(f"http://127.0.0.1:{door.port}").copy_with(raw_path=path.encode())
    answer = client.send(request)
    assert answer.status_code in {400, 404}
    assert "version_info" not in answer.text
    assert "routes_age" not in answer.text


def test_no_key_and_bad_key_are_told_apart_from_each_other_only(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    for path, method in ((CHAT, "POST"), ("/v1/models", "GET"), ("/v1/models/a-chat", "GET")):
        for said, code in (
            ("", "missing_api_key"),
            ("Basic abc", "missing_api_key"),
            ("Bearer", "missing_api_key"),
            ("Bearer slk_wrong", "invalid_api_key"),
            (f"Bearer {SECRET_A},{SECRET_A}", "invalid_api_key"),
        ):
            answer = client.request(
                method, path, headers={"authorization": said}, json=chat("a-chat") if method == "POST" else None
            )
            assert (answer.status_code, error_of(answer)["code"]) == (401, code), (path, said)
            assert answer.headers["www-authenticate"] == "Bearer"
    with pytest.raises(openai.AuthenticationError):
        sdk(door, "slk_wrong").models.list()


def test_c40_the_list_equals_what_a_call_allows(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    one, two = (engine.address for engine in engines)
    door.show(
        table(
            route("dep_1", "prj_a", "a-chat", one),
            route("dep_2", "prj_a", "shared", two),
            route("dep_3", "prj_b", "b-chat", two),
        )
    )
    listed = [model.id for model in sdk(door).models.list()]
    assert listed == ["a-chat", "shared"]
    for name in listed:
        assert client.post(CHAT, json=chat(name)).status_code == 200
        assert client.get(f"/v1/models/{name}").json()["id"] == name
    foreign = client.post(CHAT, json=chat("b-chat"))
    unknown = client.post(CHAT, json=chat("nope99"))
    assert foreign.status_code == unknown.status_code == 404
    assert error_of(foreign)["code"] == "model_not_found"
    assert foreign.text.replace("b-chat", "nope99") == unknown.text
    secret = {"date", "x-request-id"}
    assert {k: v for k, v in foreign.headers.items() if k not in secret} == {
        k: v for k, v in unknown.headers.items() if k not in secret
    }
    gets = [client.get(f"/v1/models/{name}") for name in ("b-chat", "nope99")]
    assert [answer.status_code for answer in gets] == [404, 404]
    assert gets[0].text.replace("b-chat", "nope99") == gets[1].text
    assert len(engines[1].seen) == 1
    with pytest.raises(openai.NotFoundError):
        sdk(door).chat.completions.create(model="b-chat", messages=HELLO)  # type: ignore[arg-type]


def test_a_key_and_a_model_work_from_the_moment_they_are_there(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    """An unknown key or model waits for one fresh table before it is refused."""
    fresh = "slk_" + "f" * 40
    models = table(route("dep_a", "prj_a", "a-chat", engines[0].address))
    door.show(models)
    keys = {**models.keys, digest(fresh): Key("key_f", "prj_a")}
    door.table = table(*models.routes, keys=keys)
    headers = {"authorization": f"Bearer {fresh}"}
    assert client.get("/v1/models", headers=headers).status_code == 200
    door.table = table(*models.routes, route("dep_n", "prj_a", "newer"), keys=keys)
    assert client.get("/v1/models/newer", headers=headers).status_code == 200


def test_a_key_that_expired_is_refused(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    keys = {digest(SECRET_A): Key("key_a", "prj_a", expires_at=past)}
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address), keys=keys))
    assert error_of(client.post(CHAT, json=chat("a-chat")))["code"] == "invalid_api_key"
    assert engines[0].seen == []


def test_a_request_larger_than_the_limit_is_refused_whole(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    below = client.post(CHAT, json=chat("a-chat", padding="x" * (BODY_BYTES - 1000)))
    assert below.status_code == 200
    above = client.post(CHAT, json=chat("a-chat", padding="x" * (BODY_BYTES + 1)))
    assert (above.status_code, error_of(above)["code"]) == (413, "request_too_large")
    assert len(engines[0].seen) == 1


def test_each_call_leaves_one_line_that_names_key_project_deployment_and_model(
    client: httpx.Client, door: TheDoor, engines: list[Engine]
) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    answers = [client.post(CHAT, json=chat("a-chat", stream=True), headers={"x-request-id": "mine"}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 2
    assert "mine" not in ids
    entry = door.logged(ids[0])
    assert (entry["key"], entry["project"], entry["deployment"], entry["model"]) == ("key_a", "prj_a", "dep_a", "a-chat")
    assert (entry["status"], entry["path"], entry["method"]) == (200, CHAT, "POST")
    assert entry["bytes_sent"] == len(answers[0].content)
    assert engines[0].seen[0]["headers"]["x-request-id"] == ids[0]
    refused = client.post(CHAT, json=chat("nope"))
    line = door.logged(refused.headers["x-request-id"])
    assert (line["status"], line["deployment"]) == (404, None)
    assert SECRET_A not in door.access_log.read_text()
