"""The engine agent: the part of a kubelet that kwok does not play. It runs a real server for each pod it can serve.

A pod bound to a node gets an llama.cpp server on its own address and port; once that answers /health the agent annotates
the pod, and only that lets the kwok Stage make it Ready. Deletion goes as a kubelet does it: preStop, SIGTERM, wait for
the exit or the end of the grace, SIGKILL, the terminated state with finishedAt and a terminal phase, and only then the
annotation that lets the Stage remove the pod.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
from pathlib import Path
from typing import Any

import httpx

from deploy.local.agent_life import PodLives
from deploy.local.agent_occupant import Occupant
from deploy.local.agent_pods import EnginePlan
from deploy.local.agent_writer import PodWriter
from deploy.local.controlplane_api import Kubeconfig

Json = dict[str, Any]
log = logging.getLogger("slipway.agent")

_WATCH_SECONDS = 240


class EngineAgent:
    """Follows the pods of every node and gives each one life; right again after any restart of itself or the API server."""

    def __init__(self, *, kubeconfig: Path, plan: EnginePlan, work: Path) -> None:
        self._api = httpx.AsyncClient(**Kubeconfig.read(kubeconfig).options())
        self._probe = httpx.AsyncClient(trust_env=False, timeout=1)
        self._lives = PodLives(plan=plan, work=work, write=PodWriter(self._api), probe=self._probe)
        self._occupants: dict[str, Occupant] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Follow until cancelled; every engine is then killed."""
        wait = 0.2
        try:
            while True:
                try:
                    await self._watch(await self._relist())
                    wait = 0.2
                except (httpx.HTTPError, json.JSONDecodeError) as error:
                    log.warning("the API server: %s %s; again in %.1f s", type(error).__name__, error, wait)
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, 5)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._probe.aclose()
            await self._api.aclose()

    async def _relist(self) -> str:
        """See every bound pod; what is no longer listed is gone. Returns the version to watch from."""
        seen: set[str] = set()
        params = {"fieldSelector": "spec.nodeName!=", "limit": "500"}
        while True:
            response = await self._api.get("/api/v1/pods", params=params)
            response.raise_for_status()
            listing = response.json()
            for pod in listing["items"]:
                seen.add(pod["metadata"]["uid"])
                self._see(pod)
            following = listing["metadata"].get("continue")
            if not following:
                break
            params["continue"] = following
        for uid in set(self._occupants) - seen:
            self._occupants[uid].lose()
        return str(listing["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> None:
        """Follow changes; returns when a new list is due."""
        params = {
            "fieldSelector": "spec.nodeName!=",
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
        }
        params["timeoutSeconds"] = str(_WATCH_SECONDS)
        timeout = httpx.Timeout(15, read=_WATCH_SECONDS + 15)
        async with self._api.stream("GET", "/api/v1/pods", params=params, timeout=timeout) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if not line:
                    continue
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] in {"ADDED", "MODIFIED"}:
                    self._see(event["object"])
                elif event["type"] == "DELETED":
                    occupant = self._occupants.get(event["object"]["metadata"]["uid"])
                    if occupant is not None:
                        occupant.lose()

    def _see(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        occupant = self._occupants.get(uid)
        if occupant is not None:
            occupant.see(pod)
            return
        occupant = self._occupants[uid] = Occupant(pod)
        task = asyncio.create_task(self._lives.live(occupant), name=occupant.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._occupants.pop(uid, None))
        task.add_done_callback(_report_crash)


def _report_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the life of %s failed", task.get_name(), exc_info=task.exception())


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True, type=Path)
    parser.add_argument("--fleet", required=True, type=Path)
    parser.add_argument("--work", required=True, type=Path)
    wanted = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    agent = EngineAgent(kubeconfig=wanted.kubeconfig, plan=EnginePlan.read(wanted.fleet), work=wanted.work)
    running = asyncio.create_task(agent.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await running


if __name__ == "__main__":
    asyncio.run(_main())
