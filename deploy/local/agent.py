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
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from deploy.local.agent_pods import (
    FINISH,
    GONE,
    READY,
    Batch,
    EnginePlan,
    Refused,
    Serve,
    deadline_of,
    is_terminal,
    pre_stop_seconds,
    restart_count,
    stamp,
    status_patch,
    was_started,
    work_of,
)
from deploy.local.controlplane_api import Kubeconfig
from deploy.local.engine_model import ensure_model
from deploy.local.state import CHECKOUT
from deploy.local.supervisor import die_with_parent

Json = dict[str, Any]
log = logging.getLogger("slipway.agent")

_WATCH_SECONDS = 240
_LONGEST_BACKOFF = 30.0


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Occupant:
    """One pod on a node of this fleet: its newest object, and what waits for it to change."""

    pod: Json
    gone: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    @property
    def leaving(self) -> bool:
        """It is being deleted, or is already gone from the API."""
        return self.gone or deadline_of(self.pod) is not None

    @property
    def finish(self) -> str:
        """The terminal phase that a test asks for by annotation, or nothing."""
        return str(self.pod["metadata"].get("annotations", {}).get(FINISH, ""))

    def see(self, pod: Json) -> None:
        self.pod = pod
        self._changed.set()

    def lose(self) -> None:
        self.gone = True
        self._changed.set()

    async def until(self, holds: Callable[[], bool], *, at_most: Callable[[], float] | None = None) -> bool:
        """Wait until ``holds()``; False when ``at_most()`` seconds (asked anew after each change) passed first."""
        while not holds():
            self._changed.clear()
            left = at_most() if at_most is not None else None
            if left is not None and left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return True

    def wake(self) -> None:
        self._changed.set()


@dataclass
class Engine:
    """A started process and when it started and ended."""

    process: asyncio.subprocess.Process
    started: datetime
    ended: datetime | None = None

    @property
    def code(self) -> int | None:
        return self.process.returncode

    def state(self, *, reason: str = "") -> Json:
        """Its terminated container state. A process ended by a signal has 128 + its number, as containers report it."""
        code = self.code or 0
        code = 128 - code if code < 0 else code
        return {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Completed" if code == 0 else "Error"),
                "startedAt": stamp(self.started),
                "finishedAt": stamp(self.ended or _now()),
            }
        }


class EngineAgent:
    """Follows the pods of every node and gives each one life; right again after any restart of itself or the API server."""

    def __init__(self, *, kubeconfig: Path, plan: EnginePlan, work: Path) -> None:
        self._kubeconfig = kubeconfig
        self._plan = plan
        self._logs = work / "engines"
        self._model = ensure_model(work / "slipway-tiny.gguf")
        self._occupants: dict[str, Occupant] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(plan.limit)
        self._probe = httpx.AsyncClient(trust_env=False, timeout=2)
        self._logs.mkdir(parents=True, exist_ok=True)

    async def run(self) -> None:
        """Follow until cancelled; every engine is then killed."""
        async with httpx.AsyncClient(**Kubeconfig.read(self._kubeconfig).options()) as self._api:
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
        task = asyncio.create_task(self._live(occupant), name=occupant.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_report_crash)

    async def _live(self, occupant: Occupant) -> None:
        """One pod's life: accepted by kwok, run, removed."""
        uid = occupant.pod["metadata"]["uid"]
        try:
            await occupant.until(lambda: occupant.leaving or bool(occupant.pod.get("status", {}).get("podIP")))
            if not occupant.leaving and not is_terminal(occupant.pod):
                work = work_of(occupant.pod, self._plan)
                if isinstance(work, Refused):
                    await self._wait_with(occupant, work.reason, work.message)
                else:
                    await self._run(occupant, work)
            elif not is_terminal(occupant.pod) and was_started(occupant.pod):
                # An earlier agent ran it, and its process ended with that agent while the pod was being deleted.
                lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": stamp(_now())}}
                await self._patch_status(
                    occupant,
                    status_patch(occupant.pod, state=lost, at=_now(), phase="Failed", restarts=restart_count(occupant.pod)),
                )
            await occupant.until(lambda: occupant.leaving)
            await self._annotate(occupant, {GONE: "true"})
            await occupant.until(lambda: occupant.gone)
        finally:
            self._occupants.pop(uid, None)
            self._log_of(occupant).unlink(missing_ok=True)

    async def _wait_with(self, occupant: Occupant, reason: str, message: str) -> None:
        """Leave the container waiting, with its reason."""
        state = {"waiting": {"reason": reason, "message": message}}
        await self._patch_status(
            occupant, status_patch(occupant.pod, state=state, at=_now(), restarts=restart_count(occupant.pod))
        )

    async def _run(self, occupant: Occupant, work: Serve | Batch) -> None:
        """Run the container until the pod ends; restart it with a growing pause when it ends by itself."""
        restarts = restart_count(occupant.pod)
        if was_started(occupant.pod):
            restarts += 1
            await self._annotate(occupant, {READY: None})
            down = {"waiting": {"reason": "ContainerCreating", "message": "its process ended with an earlier engine agent"}}
            await self._patch_status(occupant, status_patch(occupant.pod, state=down, at=_now(), restarts=restarts))
        pause = 1.0
        while not occupant.leaving and not occupant.finish:
            if not await self._enter(occupant):
                return
            try:
                engine = await self._start(occupant, work)
                follower = asyncio.create_task(self._follow(engine, occupant))
                try:
                    if await self._serve(occupant, work, engine, restarts):
                        return
                finally:
                    if engine.code is None:
                        with contextlib.suppress(ProcessLookupError):
                            engine.process.kill()
                    await asyncio.shield(follower)
            finally:
                self._room.release()
            if (_now() - engine.started).total_seconds() > 60:
                pause = 1.0
            restarts += 1
            waiting = {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": f"restarts in {pause:.0f} s; it said: {self._last_words(occupant)}",
                }
            }
            await self._annotate(occupant, {READY: None})
            patch = status_patch(
                occupant.pod, state=waiting, at=_now(), restarts=restarts, last_state=engine.state(), phase="Running"
            )
            await self._patch_status(occupant, patch)
            again = _now().timestamp() + pause
            await occupant.until(lambda: occupant.leaving, at_most=lambda again=again: again - _now().timestamp())  # type: ignore[misc]
            pause = min(pause * 2, _LONGEST_BACKOFF)

    async def _enter(self, occupant: Occupant) -> bool:
        """Take one of the limited engine places; False when the pod left before one was free."""
        if self._room.locked():
            message = f"the local fleet runs at most {self._plan.limit} engines at once; this one waits for a place"
            await self._wait_with(occupant, "CreateContainerError", message)
        entering = asyncio.create_task(self._room.acquire())
        entering.add_done_callback(lambda _: occupant.wake())
        try:
            await occupant.until(lambda: entering.done() or occupant.leaving)
        except asyncio.CancelledError:
            entering.cancel()
            raise
        if not entering.done():
            entering.cancel()
            return False
        return True

    async def _start(self, occupant: Occupant, work: Serve | Batch) -> Engine:
        if isinstance(work, Batch):
            command = ["sleep", "infinity"]
        else:
            address = occupant.pod["status"]["podIP"]
            command = [
                sys.executable, "-m", "deploy.local.engine", "--model", str(self._model),
                "--host", address, "--port", str(work.port), "--alias", work.alias,
            ]  # fmt: skip
        with self._log_of(occupant).open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=CHECKOUT,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GGML_NO_BACKTRACE": "1"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,
            )
        log.info("%s: started %s", occupant.name, " ".join(command[1:]))
        return Engine(process, _now())

    async def _follow(self, engine: Engine, occupant: Occupant) -> None:
        await engine.process.wait()
        engine.ended = _now()
        occupant.wake()

    async def _serve(self, occupant: Occupant, work: Serve | Batch, engine: Engine, restarts: int) -> bool:
        """From start to end of one process. True when the pod ended with it, False when it is to be restarted."""
        running = {"running": {"startedAt": stamp(engine.started)}}
        await self._patch_status(
            occupant, status_patch(occupant.pod, state=running, at=_now(), phase="Running", restarts=restarts)
        )
        if isinstance(work, Serve):
            url = f"http://{occupant.pod['status']['podIP']}:{work.port}/health"
            while engine.code is None and not occupant.leaving and not await self._healthy(url):
                await asyncio.sleep(0.05)
        if engine.code is None and not occupant.leaving:
            await self._annotate(occupant, {READY: "true"})
        await occupant.until(lambda: engine.code is not None or occupant.leaving or bool(occupant.finish))
        if engine.code is not None and not occupant.leaving:
            return False
        await self._end(occupant, engine)
        if occupant.gone:
            return True
        asked = occupant.finish if not occupant.leaving else ""
        state = engine.state(reason="Completed" if asked == "Succeeded" else "Error" if asked else "")
        if asked:
            state["terminated"]["exitCode"] = 0 if asked == "Succeeded" else 1
        phase = "Succeeded" if state["terminated"]["exitCode"] == 0 else "Failed"
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        await self._patch_status(
            occupant, status_patch(occupant.pod, state=state, at=_now(), phase=phase, restarts=restarts, reason=reason)
        )
        return True

    async def _end(self, occupant: Occupant, engine: Engine) -> None:
        """preStop, SIGTERM, wait, SIGKILL at the end of the grace; at once when the pod is already gone from the API."""

        def ended() -> bool:
            return engine.code is not None or occupant.gone

        def grace() -> float:
            deadline = deadline_of(occupant.pod)
            return (deadline - _now()).total_seconds() if deadline is not None else _LONGEST_BACKOFF

        if occupant.leaving:
            sleep_ends = _now().timestamp() + pre_stop_seconds(occupant.pod)
            await occupant.until(ended, at_most=lambda: min(sleep_ends - _now().timestamp(), grace()))
        if engine.code is None and not occupant.gone:
            engine.process.terminate()
            await occupant.until(ended, at_most=grace)
        if engine.code is None:
            engine.process.kill()
            await engine.process.wait()
            engine.ended = _now()
        log.info("%s: ended with code %s", occupant.name, engine.code)

    async def _healthy(self, url: str) -> bool:
        try:
            return (await self._probe.get(url)).status_code == 200
        except httpx.HTTPError:
            return False

    async def _annotate(self, occupant: Occupant, annotations: dict[str, str | None]) -> None:
        body = {"metadata": {"uid": occupant.pod["metadata"]["uid"], "annotations": annotations}}
        await self._patch(occupant, "", "application/merge-patch+json", body)

    async def _patch_status(self, occupant: Occupant, body: Json) -> None:
        await self._patch(occupant, "/status", "application/strategic-merge-patch+json", body)

    async def _patch(self, occupant: Occupant, below: str, kind: str, body: Json) -> None:
        """Write until it is written; a pod of that uid that no longer exists is gone."""
        meta = occupant.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}{below}"
        wait = 0.1
        while not occupant.gone:
            try:
                response = await self._api.patch(path, headers={"Content-Type": kind}, content=json.dumps(body))
            except httpx.HTTPError as error:
                log.warning("%s: %s; again in %.1f s", occupant.name, type(error).__name__, wait)
            else:
                if response.status_code == 404 or (response.status_code == 409 and "uid" in response.text):
                    occupant.lose()
                    return
                if response.status_code < 300:
                    return
                log.warning("%s: %s %s", occupant.name, response.status_code, response.text[:300])
                if response.status_code in {400, 422}:
                    return
            await asyncio.sleep(wait)
            wait = min(wait * 2, 5)

    def _log_of(self, occupant: Occupant) -> Path:
        return self._logs / f"{occupant.pod['metadata']['uid']}.log"

    def _last_words(self, occupant: Occupant) -> str:
        path = self._log_of(occupant)
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return lines[-1][-300:] if lines else "nothing"


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
