"""A deployment's changes as they happen: server-sent events.

The body is an async generator, so that an ASGI server sends each event by itself, and its headers keep every middleware
and proxy from holding it back (C34). It ends by itself after some minutes; a client that reconnects with Last-Event-ID
goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from models_app.selectors.changes import Changes, changes_since, newest_step
from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from portal.tenancy.api.endpoint import Endpoint

POLL_SECONDS = 0.5
HEARTBEAT_POLLS = 30
POLLS = 1200
"""Looks before the stream ends by itself: ten minutes, after which a revoked token or session is refused at the door."""

_ID_MAX = 2**63 - 1


class EventStreamRenderer(BaseRenderer):
    """Only there so that ``Accept: text/event-stream`` is understood; errors are JSON all the same."""

    media_type = "text/event-stream"
    format = "events"

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        return JSONRenderer().render(data)


class DeploymentEventsView(Endpoint):
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
        parameters=[OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER, description="Go on after this event.")],
    )
    def get(self, request: Request, public_id: str) -> StreamingHttpResponse:
        """Events `state` (a step of the timeline, with an id to resume from) and `changed` (load the deployment anew)."""
        newest = newest_step(actor=self.actor, public_id=public_id)
        seen = request.headers.get("Last-Event-ID", "")
        after = min(int(seen), newest) if seen.isascii() and seen.isdecimal() and len(seen) < 20 else newest
        return StreamingHttpResponse(
            _stream(self.actor, public_id, after),
            content_type="text/event-stream",
            headers={
                "Cache-Control": "no-cache, no-transform",
                "Content-Encoding": "identity",
                "X-Accel-Buffering": "no",
            },
        )

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return response


async def _stream(actor: Actor, public_id: str, after: int) -> AsyncIterator[str]:
    read = sync_to_async(changes_since)
    standing: tuple[Any, ...] | None = None
    yield "retry: 2000\n\n"
    for poll in range(POLLS):
        try:
            changes: Changes = await read(actor=actor, public_id=public_id, after=after)
        except NotFound:
            return
        for step in changes.steps:
            after = step.id
            yield _event(
                "state",
                {"phase": step.phase, "reason": step.reason, "message": step.message, "at": step.at.isoformat()},
                step.id,
            )
        if standing is not None and changes.standing != standing:
            phase, version, generation, observed_generation, _ = changes.standing
            yield _event(
                "changed",
                {"phase": phase, "version": version, "generation": generation, "observed_generation": observed_generation},
            )
        standing = changes.standing
        if changes.gone:
            yield _event("gone", {})
            return
        if poll % HEARTBEAT_POLLS == HEARTBEAT_POLLS - 1:
            yield ": still here\n\n"
        await asyncio.sleep(POLL_SECONDS)


def _event(name: str, data: dict[str, Any], event_id: int | None = None) -> str:
    number = f"id: {event_id}\n" if event_id is not None else ""
    return f"{number}event: {name}\ndata: {json.dumps(data)}\n\n"
