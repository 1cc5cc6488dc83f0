"""A tiny real engine for gateway tests: an OpenAI-shaped ASGI server that remembers what reached it.

The ``x-test`` request header chooses what it does: ``hang`` (no header is ever sent), ``slow`` (streams until the caller
has gone or the gate opens), ``die`` (cuts the connection in mid-stream), anything else answers at once.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TOOL_CALLS = [
    {"index": 0, "id": "call_a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}},
    {"index": 1, "id": "call_b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    {"index": 0, "function": {"arguments": "1}"}},
]


class Server:
    """An ASGI application under uvicorn in a thread of the test process, on its own loopback address."""

    def __init__(self, app: Any, host: str, port: int, *, lifespan: str = "off") -> None:
        config = uvicorn.Config(
            app, host=host, port=port, lifespan=lifespan, log_level="warning", access_log=False, timeout_graceful_shutdown=1
        )
        self.host, self.port = host, port
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            threading.Event().wait(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


class Engine:
    """One upstream. ``seen`` holds each request's headers and body; ``active`` those not ended; ``gate`` opens slow ones."""

    def __init__(self, host: str, port: int) -> None:
        self.seen: list[dict[str, Any]] = []
        self.active = 0
        self.cancelled = 0
        self.gate = threading.Event()
        self.server = Server(self, host, port)

    @property
    def address(self) -> tuple[str, int]:
        return self.server.host, self.server.port

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.seen.append({"path": scope["path"], "headers": headers, "body": body})
        self.active += 1
        try:
            await self._answer(headers.get("x-test", ""), json.loads(body or b"{}"), receive, send)
        finally:
            self.active -= 1

    async def _answer(self, mode: str, asked: dict[str, Any], receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(self._gone(receive))
        try:
            if mode == "hang":
                await gone
                return
            if not asked.get("stream"):
                await self._plain(send, asked)
                return
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
            for chunk in chunks(asked.get("model", ""), tools=mode == "tools"):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            while mode == "slow" and not gone.done() and not self.gate.is_set():
                await asyncio.wait({gone}, timeout=0.05)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if mode == "die":
                raise ConnectionAbortedError("the engine died in mid-stream, as the test asked")
            await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})
        finally:
            gone.cancel()

    async def _plain(self, send: Send, asked: dict[str, Any]) -> None:
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked.get("model", ""),
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "one two three"}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
        }
        text = json.dumps(answer).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": text})

    async def _gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.cancelled += 1


def chunks(model: str, *, tools: bool = False) -> list[bytes]:
    """The events of one streamed answer, before ``[DONE]``."""
    if tools:
        deltas: list[dict[str, Any]] = [{"tool_calls": [call]} for call in TOOL_CALLS]
        ending = "tool_calls"
    else:
        deltas = [{"content": word} for word in ("one", " two", " three")]
        ending = "stop"

    def event(delta: dict[str, Any], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    return [*(event(delta, None) for delta in deltas), event({}, ending)]
