"""A running Slipway for a benchmark: all processes, the demo and the real cluster (etcd and Postgres without fsync)."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator

from deploy.local.fleet import LocalFleet
from deploy.local.stack import Stack
from deploy.local.state import state_dir


@contextlib.contextmanager
def running() -> Iterator[tuple[Stack, LocalFleet]]:
    """Started in a fresh state folder, stopped at the end, removed with the process; says each step on stderr."""
    state = state_dir() / f"bench-{os.getpid()}"
    # Registered before the database's own end, so it runs after it: a server whose folder is gone cannot be told to stop.
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    stopped = threading.Event()

    def say(text: str, fraction: float | None = None) -> None:
        print(f"slipway: {text}", file=sys.stderr, flush=True)

    stack = Stack(state=state, say=say, durable=False)
    fleet = LocalFleet(state=state / "fleet", credentials=stack.credentials, progress=say, stopped=stopped, fsync=False)
    try:
        stack.prepare()
        fleet.start()
        stack.start()
        if not stack.wait_for(f"{stack.web_url}/readyz", within=60, stopped=stopped):
            raise RuntimeError(f"the stack is not ready; logs in {stack.logs}")
        yield stack, fleet
    finally:
        stopped.set()
        stack.stop()
        fleet.stop()
