"""The gateway process: ``uvicorn routing.authz.asgi:application --lifespan on``."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import django
from django.conf import settings

from portal.settings.environment import use_settings

use_settings("portal.settings.gateway")
django.setup()

from routing.authz.app import Gateway  # noqa: E402  (needs the app registry)
from routing.authz.follower import Follower  # noqa: E402
from routing.authz.reader import read_route_table  # noqa: E402
from routing.domain.table import RouteTable  # noqa: E402
from routing.envoy.resources import Door  # noqa: E402

_reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="route-table")


async def _read() -> RouteTable:
    return await asyncio.get_running_loop().run_in_executor(_reader, read_route_table)


application = Gateway(
    Follower(_read),
    Door(
        idle_seconds=settings.GATEWAY_IDLE_SECONDS,
        body_bytes=settings.GATEWAY_BODY_BYTES,
        origins=settings.GATEWAY_ORIGINS,
    ),
)
