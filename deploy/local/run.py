"""`make run`: the whole of Slipway on this machine, from nothing, until Ctrl-C.

1. PostgreSQL, Valkey, schema, static files and demo data. 2. Web, worker, beat, observer, gateway, Envoy: the page is
usable. 3. Meanwhile the Kubernetes control plane is built (once per machine) and started with the demo fleet; what was
approved before that converges when it is there.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from deploy.local.fleet import LocalFleet
from deploy.local.ports import free_port
from deploy.local.processes import PROCESSES
from deploy.local.services import start_postgres, start_valkey
from deploy.local.state import CHECKOUT, state_dir
from deploy.local.supervisor import Supervisor

console = Console(highlight=False)


class Run:
    """One run: what was started, and how to stop it."""

    def __init__(self, *, kubeconfig: str) -> None:
        self.state = state_dir() / "run"
        self.state.mkdir(exist_ok=True)
        self.kubeconfig = kubeconfig
        self.credentials = self.state / "clusters"
        self.credentials.mkdir(exist_ok=True)
        self.progress_file = self.state / "progress.json"
        self.supervisor = Supervisor(logs=self.state / "logs", say=lambda text: console.print(f"[yellow]slipway[/] {text}"))
        self.stopped = threading.Event()
        self.fleet: LocalFleet | None = None
        self._lock = (self.state / "lock").open("w")

    def take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("slipway: this checkout already runs; stop that one first (Ctrl-C in its terminal)")

    def _secret(self, name: str) -> str:
        """A secret of this state folder, made once, readable by its owner only."""
        path = self.state / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24))
        return path.read_text()

    def environment(self) -> dict[str, str]:
        """What every process is given; ports are free ones."""
        ports = {
            "web_port": free_port(8000),
            "gateway_port": free_port(8100),
            "door_port": free_port(8080),
            "envoy_admin_port": free_port(8101),
        }
        self.values = {
            "host": "127.0.0.1",
            "gateway_host": "127.0.0.1",
            "state": str(self.state),
            "access_log": str(self.state / "access.log"),
            **{name: str(port) for name, port in ports.items()},
        }
        origin = f"http://127.0.0.1:{ports['web_port']}"
        keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR"}}
        return {
            **keep,
            "PATH": f"{CHECKOUT / '.venv' / 'bin'}:{keep.get('PATH', '')}",
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "SLIPWAY_SECRET_KEY": self._secret("secret-key"),
            "SLIPWAY_DATABASE_URL": start_postgres(self.state / "postgres"),
            "SLIPWAY_VALKEY_URL": f"redis://127.0.0.1:{start_valkey(self.state / 'valkey').port}/0",
            "SLIPWAY_CLUSTER_CREDENTIALS_DIR": str(self.credentials),
            "SLIPWAY_GATEWAY_URL": f"http://127.0.0.1:{ports['door_port']}/v1",
            "SLIPWAY_ACCESS_LOG": self.values["access_log"],
            "SLIPWAY_LOCAL_PROGRESS_FILE": str(self.progress_file),
            "SLIPWAY_STATIC_ROOT": str(self.state / "static"),
            "SLIPWAY_HTTPS": "false",
            "SLIPWAY_TRUSTED_ORIGINS": origin,
        }

    def manage(self, environment: dict[str, str], *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env={**environment, "DJANGO_SETTINGS_MODULE": "portal.settings.web"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"slipway: manage.py {arguments[0]} failed:\n{done.stdout}{done.stderr}")

    def prepare(self, environment: dict[str, str]) -> None:
        self.manage(environment, "migrate", "--verbosity", "0")
        self.manage(environment, "collectstatic", "--noinput", "--verbosity", "0")
        self.manage(environment, "demo_load", "deploy/local/demo.yaml", "--password-file", str(self._password_file()))

    def _password_file(self) -> Path:
        self._secret("demo-password")
        return self.state / "demo-password"

    def start_processes(self, environment: dict[str, str]) -> None:
        for process in PROCESSES:
            command = [part.format(**self.values) for part in process.command]
            self.supervisor.start(
                process.name, command, {**environment, **process.environment, "DJANGO_SETTINGS_MODULE": process.settings}
            )

    def wait_for_page(self, *, within: float) -> None:
        url = f"http://127.0.0.1:{self.values['web_port']}/healthz"
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and not self.stopped.is_set():
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError), urllib.request.urlopen(url, timeout=2):
                return
            self.supervisor.tend()
            self.stopped.wait(0.3)
        if not self.stopped.is_set():
            console.print(f"[red]slipway[/] the page does not answer yet; its log: {self.state / 'logs' / 'web.log'}")

    def report(self, step: str, fraction: float | None, *, done: bool = False, failed: str = "") -> None:
        """Tell the fleet page how far the local cluster is; replaced in one step, so a reader never sees half."""
        part = self.progress_file.with_suffix(".part")
        record = {"step": step, "fraction": fraction, "done": done, "failed": failed, "at": datetime.now(UTC).isoformat()}
        part.write_text(json.dumps(record))
        part.replace(self.progress_file)

    def bring_up_fleet(self, bar: Progress, task: TaskID) -> None:
        def progress(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, completed=(fraction or 0) * 100)
            self.report(step, fraction)

        try:
            if self.kubeconfig:
                progress("using your cluster", 1.0)
                shutil.copy(self.kubeconfig, self.credentials / "local.kubeconfig")
            else:
                self.fleet = LocalFleet(state=self.state / "fleet", credentials=self.credentials, progress=progress, stopped=self.stopped)
                self.fleet.start()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            if not self.stopped.is_set():
                self.report("the local cluster did not start", None, failed=str(error))
                bar.update(task, description=f"the local cluster did not start: {error}")
            return
        self.report("the cluster is up", 1.0, done=True)
        bar.update(task, description="the cluster is up", completed=100)

    def say_where(self) -> None:
        password = self._password_file().read_text()
        console.print()
        console.print(f"[bold green]Slipway is up:[/] [bold]http://127.0.0.1:{self.values['web_port']}/[/]")
        console.print(f"  models answer at http://127.0.0.1:{self.values['door_port']}/v1 (OpenAI-compatible)")
        console.print(f"  sign in with the password [bold]{password}[/] as one of")
        console.print("    researcher@north-lab.example   asks for models in the project Speech")
        console.print("    approver@north-lab.example     leads Speech, administers the organization")
        console.print("    operator@north-lab.example     looks after the fleet")
        console.print('  first: sign in as the researcher and choose "Ask for a model"; then approve it as the approver')
        console.print(f"  logs: {self.state / 'logs'}   stop: Ctrl-C   remove all of it: make clean")
        console.print()

    def run(self) -> None:
        self.take_lock()
        self.report("starting", 0.0)
        with console.status("PostgreSQL, Valkey, schema and demo data"):
            environment = self.environment()
            self.prepare(environment)
        with console.status("web, worker, beat, observer, gateway and Envoy"):
            self.start_processes(environment)
            self.wait_for_page(within=60)
        self.say_where()
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=False) as bar:
            task = bar.add_task("the local cluster", total=100)
            builder = threading.Thread(target=self.bring_up_fleet, args=(bar, task), daemon=True)
            builder.start()
            while builder.is_alive() and not self.stopped.is_set():
                self.supervisor.tend()
                self.stopped.wait(0.5)
            bar.stop()
        while not self.stopped.is_set():
            self.supervisor.tend()
            self.stopped.wait(1)

    def stop(self) -> None:
        """Stop everything that was started, in reverse order; safe at any moment."""
        self.stopped.set()
        self.supervisor.stop()
        if self.fleet is not None:
            self.fleet.stop()


def main() -> None:
    """Run until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="make run")
    parser.add_argument("--kubeconfig", default=os.environ.get("SLIPWAY_EXTERNAL_KUBECONFIG", ""), help="use this cluster instead of a local one")
    run = Run(kubeconfig=parser.parse_args().kubeconfig)

    def on_signal(number: int, frame: object) -> None:
        run.stopped.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    try:
        run.run()
    except KeyboardInterrupt:
        console.print("\nslipway: stopping")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        run.stop()


if __name__ == "__main__":
    main()
