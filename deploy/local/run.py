"""`make run`: the whole of Slipway on this machine, from nothing, until Ctrl-C.

1. PostgreSQL, Valkey, schema, static files and demo data. 2. Web, worker, beat, observer, gateway, Envoy: the page is
usable. 3. Meanwhile the Kubernetes control plane is built (once per machine) and started with the demo fleet; what was
approved before that converges when it is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from deploy.local.fleet import LocalFleet
from deploy.local.stack import Stack, StackFailed
from deploy.local.state import state_dir

console = Console(highlight=False)
_PAGE_SECONDS = 60


class Run:
    """One run: the processes, the local cluster beside them, and the words in the terminal."""

    def __init__(self) -> None:
        self.state = state_dir() / "run"
        self.state.mkdir(exist_ok=True)
        self.stopped = threading.Event()
        self.stack: Stack | None = None
        self.fleet: LocalFleet | None = None
        self._lock = (self.state / "lock").open("w")

    def take_lock(self) -> None:
        """One run per checkout: a second would share the first one's database."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("slipway: this checkout already runs; stop that one first (Ctrl-C in its terminal)")

    def report(self, stack: Stack, step: str, fraction: float | None, *, done: bool = False, failed: str = "") -> None:
        """Tell the fleet page how far the local cluster is; replaced in one step, so a reader never sees half."""
        part = stack.progress_file.with_suffix(".part")
        record = {"step": step, "fraction": fraction, "done": done, "failed": failed, "at": datetime.now(UTC).isoformat()}
        part.write_text(json.dumps(record))
        part.replace(stack.progress_file)

    def bring_up_fleet(self, stack: Stack, bar: Progress, task: TaskID) -> None:
        """Start the local cluster, or point at the one SLIPWAY_EXTERNAL_KUBECONFIG names."""

        def progress(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, completed=(fraction or 0) * 100)
            self.report(stack, step, fraction)

        external = os.environ.get("SLIPWAY_EXTERNAL_KUBECONFIG", "")
        try:
            if external:
                shutil.copy(external, stack.credentials / "local.kubeconfig")
            else:
                self.fleet = LocalFleet(
                    state=self.state / "fleet", credentials=stack.credentials, progress=progress, stopped=self.stopped
                )
                self.fleet.start()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            if not self.stopped.is_set():
                self.report(stack, "the local cluster did not start", None, failed=str(error))
                bar.update(task, description=f"the local cluster did not start: {error}")
            return
        self.report(stack, "the cluster is up", 1.0, done=True)
        bar.update(task, description="the cluster is up", completed=100)

    def say_where(self, stack: Stack) -> None:
        """The URL, three sign-ins, and what to click first."""
        console.print()
        console.print(f"[bold green]Slipway is up:[/] [bold]{stack.web_url}/[/]")
        console.print(f"  models answer at {stack.door_url}/v1 (OpenAI-compatible)")
        console.print(f"  sign in with the password [bold]{stack.password_file.read_text()}[/] as one of")
        console.print("    researcher@north-lab.example   asks for models in the project Speech")
        console.print("    approver@north-lab.example     leads Speech, administers the organization")
        console.print("    operator@north-lab.example     looks after the fleet")
        console.print('  first: sign in as the researcher and choose "Ask for a model"; then approve it as the approver')
        console.print(f"  logs: {stack.logs}   stop: Ctrl-C   remove all of it: make clean")
        console.print()

    def run(self) -> None:
        """Everything, in order; returns when stopped."""
        self.take_lock()
        with console.status("PostgreSQL, Valkey, schema and demo data"):
            stack = Stack(state=self.state, say=lambda text: console.print(f"[yellow]slipway[/] {text}"))
            self.stack = stack
            self.report(stack, "starting", 0.0)
            stack.prepare()
        with console.status("web, worker, beat, observer, gateway and Envoy"):
            stack.start()
            if not stack.wait_for(f"{stack.web_url}/healthz", within=_PAGE_SECONDS, stopped=self.stopped):
                console.print(f"[red]slipway[/] the page does not answer yet; its log: {stack.logs / 'web.log'}")
        self.say_where(stack)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("the local cluster", total=100)
            builder = threading.Thread(target=self.bring_up_fleet, args=(stack, bar, task), daemon=True)
            builder.start()
            while builder.is_alive() and not self.stopped.is_set():
                stack.supervisor.tend()
                self.stopped.wait(0.5)
        while not self.stopped.is_set():
            stack.supervisor.tend()
            self.stopped.wait(1)

    def stop(self) -> None:
        """Stop everything that was started, in reverse order; safe at any moment."""
        self.stopped.set()
        if self.stack is not None:
            self.stack.stop()
        if self.fleet is not None:
            self.fleet.stop()


def main() -> None:
    """Run until SIGINT or SIGTERM."""
    run = Run()

    def on_signal(number: int, frame: object) -> None:
        run.stopped.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    try:
        run.run()
    except KeyboardInterrupt:
        console.print("\nslipway: stopping")
    except StackFailed as failed:
        console.print(f"[red]slipway[/] {failed}")
        sys.exit(1)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        run.stop()


if __name__ == "__main__":
    main()
