"""One pod's life on the local fleet, as a kubelet leads it: accepted, run, restarted, ended, removed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from pathlib import Path

import httpx

from deploy.local.agent_occupant import Engine, Occupant, now
from deploy.local.agent_pods import (
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
from deploy.local.agent_writer import PodWriter
from deploy.local.engine_model import ensure_model
from deploy.local.state import CHECKOUT
from deploy.local.supervisor import die_with_parent

log = logging.getLogger("slipway.agent")

_LONGEST_BACKOFF = 30.0
_PROBE_SECONDS = 2.0
_PROBE_FAILURES = 3


class PodLives:
    """Leads pods through their lives; ``plan.limit`` of them run a process at a time. Model and logs live under ``work``."""

    def __init__(self, *, plan: EnginePlan, work: Path, write: PodWriter, probe: httpx.AsyncClient) -> None:
        self._plan = plan
        self._write = write
        self._probe = probe
        self._model = ensure_model(work / "slipway-tiny.gguf")
        self._logs = work / "engines"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._room = asyncio.Semaphore(plan.limit)

    async def live(self, occupant: Occupant) -> None:
        """One pod's life: accepted by kwok, run, removed."""
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
                lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": stamp(now())}}
                await self._write.patch_status(
                    occupant,
                    status_patch(occupant.pod, state=lost, at=now(), phase="Failed", restarts=restart_count(occupant.pod)),
                )
            await occupant.until(lambda: occupant.leaving)
            await self._write.annotate(occupant, {GONE: "true"})
            await occupant.until(lambda: occupant.gone)
        finally:
            self._log_of(occupant).unlink(missing_ok=True)

    async def _wait_with(self, occupant: Occupant, reason: str, message: str) -> None:
        """Leave the container waiting, with its reason."""
        state = {"waiting": {"reason": reason, "message": message}}
        await self._write.patch_status(
            occupant, status_patch(occupant.pod, state=state, at=now(), restarts=restart_count(occupant.pod))
        )

    async def _run(self, occupant: Occupant, work: Serve | Batch) -> None:
        """Run the container until the pod ends; restart it with a growing pause when it ends by itself."""
        restarts = restart_count(occupant.pod)
        if was_started(occupant.pod):
            restarts += 1
            await self._write.annotate(occupant, {READY: None})
            down = {"waiting": {"reason": "ContainerCreating", "message": "its process ended with an earlier engine agent"}}
            await self._write.patch_status(occupant, status_patch(occupant.pod, state=down, at=now(), restarts=restarts))
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
            if (now() - engine.started).total_seconds() > 60:
                pause = 1.0
            restarts += 1
            waiting = {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": f"restarts in {pause:.0f} s; it said: {self._last_words(occupant)}",
                }
            }
            await self._write.annotate(occupant, {READY: None})
            patch = status_patch(
                occupant.pod, state=waiting, at=now(), restarts=restarts, last_state=engine.state(), phase="Running"
            )
            await self._write.patch_status(occupant, patch)
            again = now().timestamp() + pause
            await occupant.until(lambda: occupant.leaving, at_most=lambda again=again: again - now().timestamp())  # type: ignore[misc]
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
        return Engine(process, now())

    async def _follow(self, engine: Engine, occupant: Occupant) -> None:
        await engine.process.wait()
        engine.ended = now()
        occupant.wake()

    async def _serve(self, occupant: Occupant, work: Serve | Batch, engine: Engine, restarts: int) -> bool:
        """From start to end of one process. True when the pod ended with it, False when it is to be restarted."""
        running = {"running": {"startedAt": stamp(engine.started)}}
        await self._write.patch_status(
            occupant, status_patch(occupant.pod, state=running, at=now(), phase="Running", restarts=restarts)
        )
        if isinstance(work, Serve):
            url = f"http://{occupant.pod['status']['podIP']}:{work.port}/health"
            while engine.code is None and not occupant.leaving and not await self._healthy(url):
                await asyncio.sleep(0.05)
        if engine.code is None and not occupant.leaving:
            await self._write.annotate(occupant, {READY: "true"})
        await self._watch_over(occupant, work, engine, restarts)
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
        await self._write.patch_status(
            occupant, status_patch(occupant.pod, state=state, at=now(), phase=phase, restarts=restarts, reason=reason)
        )
        return True

    async def _watch_over(self, occupant: Occupant, work: Serve | Batch, engine: Engine, restarts: int) -> None:
        """Keep Ready true to what the server answers, as a readiness probe does, until the process or the pod ends."""
        failures = 0
        while True:
            probe_at = now().timestamp() + _PROBE_SECONDS
            if await occupant.until(
                lambda: engine.code is not None or occupant.leaving or bool(occupant.finish),
                at_most=lambda probe_at=probe_at: probe_at - now().timestamp(),  # type: ignore[misc]
            ):
                return
            if isinstance(work, Batch):
                continue
            if await self._healthy(f"http://{occupant.pod['status']['podIP']}:{work.port}/health"):
                if failures >= _PROBE_FAILURES:
                    await self._write.annotate(occupant, {READY: "true"})
                failures = 0
                continue
            failures += 1
            if failures == _PROBE_FAILURES and engine.code is None:
                await self._write.annotate(occupant, {READY: None})
                state = {"running": {"startedAt": stamp(engine.started)}}
                await self._write.patch_status(
                    occupant, status_patch(occupant.pod, state=state, at=now(), restarts=restarts)
                )

    async def _end(self, occupant: Occupant, engine: Engine) -> None:
        """preStop, SIGTERM, wait, SIGKILL at the end of the grace; at once when the pod is already gone from the API."""

        def ended() -> bool:
            return engine.code is not None or occupant.gone

        def grace() -> float:
            deadline = deadline_of(occupant.pod)
            return (deadline - now()).total_seconds() if deadline is not None else _LONGEST_BACKOFF

        if occupant.leaving:
            sleep_ends = now().timestamp() + pre_stop_seconds(occupant.pod)
            await occupant.until(ended, at_most=lambda: min(sleep_ends - now().timestamp(), grace()))
        if engine.code is None and not occupant.gone:
            engine.process.terminate()
            await occupant.until(ended, at_most=grace)
        if engine.code is None:
            engine.process.kill()
            await engine.process.wait()
            engine.ended = now()
        log.info("%s: ended with code %s", occupant.name, engine.code)

    async def _healthy(self, url: str) -> bool:
        try:
            return (await self._probe.get(url)).status_code == 200
        except httpx.HTTPError:
            return False

    def _log_of(self, occupant: Occupant) -> Path:
        return self._logs / f"{occupant.pod['metadata']['uid']}.log"

    def _last_words(self, occupant: Occupant) -> str:
        path = self._log_of(occupant)
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return lines[-1][-300:] if lines else "nothing"
