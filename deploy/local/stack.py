"""All of Slipway on one machine, on embedded services: what `make run`, the flow tests and the benchmarks start."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from deploy.local.ports import free_port
from deploy.local.processes import PROCESSES
from deploy.local.services import start_postgres, start_valkey
from deploy.local.state import CHECKOUT
from deploy.local.supervisor import Supervisor

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "SLIPWAY_CACHE_DIR", "SLIPWAY_STATE_DIR")


class StackFailed(RuntimeError):
    """A step of the start failed; the message holds what it printed."""


class Stack:
    """``environment`` is what every process gets; ``values`` fill the commands of the process list.

    Call prepare, start, wait_for; stop at the end.
    """

    def __init__(
        self,
        *,
        state: Path,
        say: Callable[[str], None],
        durable: bool = True,
        database_url: str = "",
    ) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self.state = state
        self.credentials = state / "clusters"
        self.credentials.mkdir(exist_ok=True)
        self.progress_file = state / "progress.json"
        self.logs = state / "logs"
        self.supervisor = Supervisor(logs=self.logs, say=say)
        self.values = {
            "host": "127.0.0.1",
            "gateway_host": "127.0.0.1",
            "state": str(state),
            "access_log": str(state / "access.log"),
            "web_port": str(free_port(8000)),
            "gateway_port": str(free_port(8100)),
            "door_port": str(free_port(8080)),
            "envoy_admin_port": str(free_port(8101)),
        }
        self.valkey = start_valkey(state / "valkey")
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self.environment = {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}:{inherited.get('PATH', '')}",
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "SLIPWAY_SECRET_KEY": self.secret("secret-key"),
            "SLIPWAY_DATABASE_URL": database_url or start_postgres(state / "postgres", durable=durable),
            "SLIPWAY_VALKEY_URL": f"redis://127.0.0.1:{self.valkey.port}/0",
            "SLIPWAY_CLUSTER_CREDENTIALS_DIR": str(self.credentials),
            "SLIPWAY_GATEWAY_URL": f"{self.door_url}/v1",
            "SLIPWAY_ACCESS_LOG": self.values["access_log"],
            "SLIPWAY_LOCAL_PROGRESS_FILE": str(self.progress_file),
            "SLIPWAY_STATIC_ROOT": str(state / "static"),
            "SLIPWAY_HTTPS": "false",
            "SLIPWAY_TRUSTED_ORIGINS": self.web_url,
        }

    @property
    def web_url(self) -> str:
        return f"http://127.0.0.1:{self.values['web_port']}"

    @property
    def door_url(self) -> str:
        return f"http://127.0.0.1:{self.values['door_port']}"

    @property
    def password_file(self) -> Path:
        self.secret("demo-password")
        return self.state / "demo-password"

    def secret(self, name: str) -> str:
        """A secret of this state folder, made once, readable by its owner only."""
        path = self.state / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24))
        return path.read_text()

    def manage(self, *arguments: str) -> str:
        """Run one management command to its end; returns what it printed, raises StackFailed on a failure."""
        return self.python("manage.py", *arguments)

    def python(self, *arguments: str) -> str:
        """Run one Python program of the checkout to its end, with the web process's settings."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=CHECKOUT,
            env={**self.environment, "DJANGO_SETTINGS_MODULE": "portal.settings.web"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StackFailed(f"{' '.join(arguments[:2])} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def prepare(self) -> None:
        """Schema, static files and the demo's people, projects, profiles and grants; each safe to repeat."""
        self.manage("migrate", "--verbosity", "0")
        self.manage("collectstatic", "--noinput", "--verbosity", "0")
        self.python("-m", "deploy.local.demo", "deploy/local/demo.yaml", "--password-file", str(self.password_file))

    def start(self, *names: str) -> None:
        """Start the named processes of the list, all when none is named."""
        for process in PROCESSES:
            if names and process.name not in names:
                continue
            command = [part.format(**self.values) for part in process.command]
            environment = {**self.environment, **process.environment, "DJANGO_SETTINGS_MODULE": process.settings}
            self.supervisor.start(process.name, command, environment)

    def wait_for(self, url: str, *, within: float, stopped: threading.Event) -> bool:
        """Whether ``url`` answers 2xx within so many seconds, tending the processes meanwhile."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and not stopped.is_set():
            with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=2):
                return True
            self.supervisor.tend()
            stopped.wait(0.2)
        return False

    def stop(self) -> None:
        """Stop every process; the embedded services end with this interpreter, Valkey now."""
        self.supervisor.stop()
        self.valkey.stop()
