"""The slim service behind the door, as plain ASGI: Envoy's authz checks, its xDS polls, and the list of models.

It reads no database: every answer comes from the follower's table in memory. Paths:
``/authz/<the call's own path>`` (ext_authz), ``/v3/discovery:<kind>`` (REST xDS, held until something changed),
``/v1/models[/<id>]`` and ``/door/…`` (what the door passes on here), ``/healthz``.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import orjson
import structlog

from portal.kernel.clock import now
from routing.authz.follower import Follower
from routing.domain import refusals
from routing.domain.admission import Admitted, admit, model_list
from routing.domain.refusals import Refusal
from routing.domain.table import RouteTable
from routing.envoy.discovery import door_of
from routing.envoy.resources import AUTHZ_PATH, PREFLIGHT_PATH, Door

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
Verdict = TypeVar("Verdict")

HOLD_SECONDS = 20.0
"""How long a poll without news is held; below the 30 s that Envoy waits (``resources.REST``)."""

FRESH_SECONDS = 1.5
"""How long an unknown key or model waits for a table that may know it; below Envoy's 2 s for an authz answer."""

_LOOK_SECONDS = 2.0
_POLL_BYTES = 4 * 1024 * 1024
_DISCOVERY = "/v3/discovery:"
_KINDS = ("listeners", "routes", "clusters", "endpoints")
_JSON: Header = (b"content-type", b"application/json")

_log = structlog.get_logger(__name__)


class Gateway:
    """The ASGI application. ``policy`` is this installation's part of every door."""

    def __init__(self, follower: Follower, policy: Door) -> None:
        self._follower = follower
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        path: str = scope["path"]
        if path.startswith(f"{AUTHZ_PATH}/"):
            await self._authorize(scope, send, path.removeprefix(AUTHZ_PATH))
        elif path.startswith(_DISCOVERY):
            await self._discover(receive, send, path.removeprefix(_DISCOVERY))
        elif path == "/v1/models" or path.startswith("/v1/models/"):
            await self._models(scope, send, path.removeprefix("/v1/models").removeprefix("/"))
        elif path == PREFLIGHT_PATH:
            await _respond(send, 204, b"", [])
        elif path == "/healthz":
            await self._health(send)
        else:
            await _refuse(send, refusals.NO_SUCH_URL, silent=scope["method"] == "HEAD")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        following: asyncio.Task[None] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                following = asyncio.create_task(self._follower.follow())
                following.add_done_callback(_stopped_following)
                await send({"type": "lifespan.startup.complete"})
            else:
                if following is not None:
                    following.cancel()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _authorize(self, scope: Scope, send: Send, path: str) -> None:
        said = _headers(scope)

        def judge(table: RouteTable) -> Admitted | Refusal:
            return admit(
                table,
                authorization=said.get("authorization", ""),
                method=scope["method"],
                path=path,
                model=said.get("x-slipway-model", ""),
                problem=said.get("x-slipway-problem", ""),
                at=now(),
            )

        verdict = await self._judged(judge)
        if isinstance(verdict, Admitted):
            found = {
                "x-slipway-route": verdict.route.deployment_id,
                "x-slipway-project": verdict.key.project_id,
                "x-slipway-key": verdict.key.key_id,
                "x-slipway-called": verdict.route.model,
            }
            await _respond(send, 200, b"", [(name.encode(), value.encode()) for name, value in found.items()])
        else:
            await _refuse(send, verdict)

    async def _models(self, scope: Scope, send: Send, wanted: str) -> None:
        authorization = _headers(scope).get("authorization", "")
        silent = scope["method"] == "HEAD"
        answer = await self._judged(lambda table: model_list(table, authorization=authorization, wanted=wanted, at=now()))
        if isinstance(answer, Refusal):
            await _refuse(send, answer, silent=silent)
        else:
            await _respond(send, 200, _json(answer), [_JSON], silent=silent)

    async def _judged(self, judge: Callable[[RouteTable], Verdict | Refusal]) -> Verdict | Refusal:
        """What ``judge`` says of the table; what a newer table might know is judged once more on a fresh one.

        So a key works from the moment it is made. Unknown and foreign names wait alike (C40).
        """
        if self._follower.table is None:
            return refusals.STARTING
        verdict = judge(self._follower.table)
        if isinstance(verdict, Refusal) and verdict.may_be_news:
            await self._follower.fresh(FRESH_SECONDS)
            verdict = judge(self._follower.table)
        return verdict

    async def _discover(self, receive: Receive, send: Send, kind: str) -> None:
        """Answer one poll: at once when the node lacks something, else when a table brings it, else 304."""
        poll = await _polled(receive)
        if kind not in _KINDS:
            await _refuse(send, refusals.NO_SUCH_URL)
            return
        if poll is None:
            await _respond(send, 400, b"a DiscoveryRequest as a JSON object is wanted", [])
            return
        if "error_detail" in poll:
            _log.error("Envoy refused resources", kind=kind, error=poll["error_detail"])
        try:
            door = door_of(poll.get("node", {}), self._policy)
        except ValueError as error:
            await _respond(send, 400, str(error).encode(), [])
            return
        names = [str(name) for name in poll.get("resource_names", [])]
        version = str(poll.get("version_info", ""))
        del poll  # Envoy's description of itself is large, and polls are held by the thousand.
        loop = asyncio.get_running_loop()
        until = loop.time() + HOLD_SECONDS
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            while not gone.done():
                discovery = self._follower.discovery
                answer = discovery.answer(kind, names, door, version) if discovery is not None else None
                if answer is not None:
                    await _respond(send, 200, answer.body, [_JSON])
                    return
                left = until - loop.time()
                if left <= 0:
                    await _respond(send, 304 if discovery is not None else 503, b"", [])
                    return
                waiting = asyncio.ensure_future(self._follower.changed(min(left, _LOOK_SECONDS)))
                await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            gone.cancel()

    async def _health(self, send: Send) -> None:
        table = self._follower.table
        if table is None:
            await _respond(send, 503, _json({"status": "starting"}), [_JSON])
            return
        age = (now() - table.read_at).total_seconds()
        known = {"status": "ok", "routes_age_seconds": round(age, 1), "models": len(table.routes)}
        await _respond(send, 200, _json(known), [_JSON])


def _stopped_following(following: asyncio.Task[None]) -> None:
    """A process that no longer follows must not go on answering from an old table: it ends, and is started again."""
    if not following.cancelled() and following.exception() is not None:
        _log.critical("the route table is no longer followed", exc_info=following.exception())
        signal.raise_signal(signal.SIGTERM)


async def _polled(receive: Receive) -> dict[str, Any] | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > _POLL_BYTES:
            return None
        if not message.get("more_body", False):
            break
    try:
        poll = orjson.loads(body)
    except ValueError:
        return None
    return poll if isinstance(poll, dict) else None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(scope: Scope) -> dict[str, str]:
    """Request headers by lower-case name; one sent twice is joined, which makes no valid key of two."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]},{text}" if key in found else text
    return found


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def _refuse(send: Send, refusal: Refusal, *, silent: bool = False) -> None:
    headers = [_JSON]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    await _respond(send, refusal.status, _json(refusal.body), headers, silent=silent)


async def _respond(send: Send, status: int, body: bytes, headers: list[Header], *, silent: bool = False) -> None:
    """``silent``: the headers that a GET would get, and no body (HEAD)."""
    if status not in {204, 304}:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if silent else body})
