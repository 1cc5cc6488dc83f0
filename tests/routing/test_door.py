"""The door end to end: real Envoy, real xDS, real authz, the official OpenAI client."""

from __future__ import annotations

import httpx
import openai
import pytest
from openai import OpenAI

from tests.routing.conftest import SECRET_A, SECRET_B, TheDoor, route, table
from tests.routing.upstream import Engine, chunks

CHAT = "/v1/chat/completions"


def chat(model: str, **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}


def sdk(door: TheDoor, secret: str = SECRET_A, **options: object) -> OpenAI:
    return OpenAI(base_url=f"{door.url}/v1", api_key=secret, max_retries=0, **options)  # type: ignore[arg-type]


def test_the_openai_client_streams_through_the_door(door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    stream = sdk(door).chat.completions.create(
        model="a-chat", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "one two three"


def test_upstream_bytes_are_relayed_unchanged(client: httpx.Client, door: TheDoor, engines: list[Engine]) -> None:
    door.show(table(route("dep_a", "prj_a", "a-chat", engines[0].address)))
    answer = client.post(CHAT, json=chat("a-chat", stream=True))
    assert answer.content == b"".join(chunks("a-chat")) + b"data: [DONE]\n\n"
