"""Keeps a set of child processes running; whatever happens to the parent, none outlives it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_STOP_GRACE_SECONDS = 15
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Run in a child between fork and exec: own session (Ctrl-C goes to the parent alone), SIGTERM if the parent dies."""
    os.setsid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """One supervised process: what to run, and its restarts so far."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    started: float = 0.0
    retry_at: float = field(default=0.0)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.command),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        self.started = time.monotonic()


class Supervisor:
    """Starts children, restarts those that end (backoff 1 s to 30 s), stops all in reverse order."""

    def __init__(self, *, logs: Path, say: Callable[[str], None]) -> None:
        self._logs = logs
        self._say = say
        self._children: list[Child] = []
        self._lock = threading.Lock()
        self._stopping = False
        logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        child = Child(name=name, command=command, environment=environment, log=self._logs / f"{name}.log")
        with self._lock:
            if self._stopping:
                raise RuntimeError("stopping")
            child.start()
            self._children.append(child)
        return child

    def pids(self) -> dict[str, int]:
        """Name -> process id of every child that runs now."""
        with self._lock:
            running = [(child.name, child.process) for child in self._children]
        return {name: process.pid for name, process in running if process is not None and process.poll() is None}

    def tend(self) -> None:
        """Restart what ended and is due; call about once a second."""
        clock = time.monotonic()
        with self._lock:
            if self._stopping:
                return
            for child in self._children:
                if child.process is None or child.process.poll() is None:
                    continue
                if child.retry_at == 0.0:
                    if clock - child.started > 60:
                        child.restarts = 0
                    child.restarts += 1
                    child.retry_at = clock + min(2 ** (child.restarts - 1), 30)
                    self._say(f"{child.name} ended with code {child.process.returncode}; its log: {child.log}")
                elif clock >= child.retry_at:
                    child.retry_at = 0.0
                    child.start()

    def stop(self) -> None:
        """SIGTERM in reverse order of start, SIGKILL after a grace; returns when every child is gone."""
        with self._lock:
            self._stopping = True
            children = [child.process for child in reversed(self._children) if child.process is not None]
        for process in children:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _STOP_GRACE_SECONDS
        for process in children:
            try:
                process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
