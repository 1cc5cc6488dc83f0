"""The embedded PostgreSQL ends with the last process that uses it, also the one that was just set up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.local.state import state_dir
from tests.waiting import eventually

START = (
    "import sys, pathlib; from deploy.local.services import start_postgres;"
    "print(start_postgres(pathlib.Path(sys.argv[1]), durable=False))"
)


@pytest.fixture
def data() -> Iterator[Path]:
    folder = state_dir() / "test" / "postgres-of-one-process"
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def servers(data: Path) -> list[int]:
    return [process.pid for process in psutil.process_iter() if str(data) in " ".join(_command(process))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


def test_nothing_runs_after_the_process_that_started_it(data: Path) -> None:
    for _time in ("fresh", "again"):
        done = subprocess.run([sys.executable, "-c", START, str(data)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert str(data) in done.stdout
        eventually(lambda: not servers(data), within=10, what="no server is left")
