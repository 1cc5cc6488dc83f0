"""Child processes of the local fleet: none outlives its parent, whatever thread started it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from deploy.local.supervisor import die_with_parent

# Linux sends PDEATHSIG when the *thread* that forked ends. Whoever calls start() may do so from a thread that ends soon, so
# every fork happens in this one, which lives as long as the process.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="slipway-spawner")


def popen(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    """Start ``command`` in its own session; it is sent SIGTERM when this process ends, however it ends."""

    def start() -> subprocess.Popen[bytes]:
        options: dict[str, Any] = {"cwd": cwd, "env": dict(env) if env is not None else None}
        return subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=die_with_parent, **options
        )

    return _spawner.submit(start).result()


class Daemon:
    """One long-lived part: the same command can be stopped, killed and started again (chaos tests do)."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, cwd: Path | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running else None

    def start(self) -> None:
        """Start it unless it runs."""
        if self.running:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR", "TZ"}}
        with self.log.open("ab") as log:
            self._process = popen(self.command, cwd=self._cwd, env=keep, stdout=log)

    def stop(self, *, within: float = 10) -> None:
        """SIGTERM, then SIGKILL after ``within`` seconds; returns when it is gone."""
        self._end(signal.SIGTERM, within)

    def kill(self) -> None:
        """SIGKILL: as a power cut would."""
        self._end(signal.SIGKILL, 10)

    def send(self, number: signal.Signals) -> None:
        """Send any signal, for example SIGSTOP and SIGCONT to make it hang and go on."""
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def tail(self, lines: int = 12) -> str:
        """The last lines of its log, for an error message."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, number: signal.Signals, within: float) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
