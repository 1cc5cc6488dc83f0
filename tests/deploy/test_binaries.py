"""The binaries' cache: keyed by go.sum, built once by whoever comes first, stopped when asked, never half-written."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from deploy.local import binaries
from deploy.local.binaries import TOOLS, BuildStopped, Tool, binary_path, build_all, missing

FAKE_GO = """#!/bin/sh
# Stands in for the Go command: answers what deploy/local/binaries.py asks, and compiles a script.
case "$1" in
  env) echo go1.26.8 ;;
  list) printf 'a\\nb\\nc\\nd\\n' ;;
  build)
    while [ "$1" != -o ]; do shift; done
    echo a >&2; echo b >&2
    if [ -n "{fail}" ]; then echo 'main.go:1: no such thing' >&2; exit 1; fi
    if [ -n "{hang}" ]; then sleep 60; fi
    echo built > "$2"; echo "$2" >> {log} ;;
esac
"""


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and a Go that only pretends; yields the folder."""
    monkeypatch.setenv("SLIPWAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    go(tmp_path)
    return tmp_path


def go(folder: Path, *, fail: bool = False, hang: bool = False) -> None:
    path = folder / "bin" / "go"
    path.parent.mkdir(exist_ok=True)
    path.write_text(FAKE_GO.format(fail="yes" if fail else "", hang="yes" if hang else "", log=folder / "built"))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def quiet(step: str, fraction: float | None) -> None:
    """No progress wanted."""


def test_a_cold_cache_builds_every_tool_once_and_tells_how_far_it_is(sandbox: Path) -> None:
    assert missing() == TOOLS
    told: list[tuple[str, float]] = []
    paths = build_all(lambda step, fraction: told.append((step, fraction if fraction is not None else -1)))
    assert set(paths) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
    assert all(path.read_text() == "built\n" for path in paths.values())
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert fractions[-1] == pytest.approx(1)
    assert any("kube-apiserver v1.37" in step for step, _ in told)
    before = (sandbox / "built").read_text()
    assert build_all(quiet) == paths
    assert (sandbox / "built").read_text() == before, "a warm cache builds nothing"


def test_a_changed_go_sum_means_another_place_in_the_cache(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = sandbox / "go"
    for module in {tool.module for tool in TOOLS}:
        (modules / module).mkdir(parents=True)
        (modules / module / "go.sum").write_text("one")
    monkeypatch.setattr(binaries, "MODULES", modules)
    before = [binary_path(tool) for tool in TOOLS]
    (modules / "kubernetes" / "go.sum").write_text("two")
    moved = {tool.name for tool, path in zip(TOOLS, before, strict=True) if binary_path(tool) != path}
    assert moved == {"kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def test_a_failed_build_says_what_the_compiler_said_and_leaves_nothing(sandbox: Path) -> None:
    go(sandbox, fail=True)
    with pytest.raises(RuntimeError, match=r"building etcd failed:\n(.*\n)*main\.go:1: no such thing"):
        build_all(quiet)
    assert [path.name for path in (sandbox / "cache").rglob("*") if path.is_file()] == ["etcd.lock"]


def test_stopping_ends_a_build_soon_and_leaves_no_half_binary(sandbox: Path) -> None:
    go(sandbox, hang=True)
    stopped = threading.Event()

    def stop_at_once(step: str, fraction: float | None) -> None:
        if fraction:
            stopped.set()

    with pytest.raises(BuildStopped):
        build_all(stop_at_once, stopped)
    assert missing() == TOOLS
    assert not list((sandbox / "cache").rglob("*.part"))


def test_two_checkouts_build_each_tool_once_between_them(sandbox: Path) -> None:
    answers: list[dict[str, Path]] = []
    threads = [threading.Thread(target=lambda: answers.append(build_all(quiet))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    assert len((sandbox / "built").read_text().splitlines()) == len(TOOLS)


def test_the_real_modules_pin_one_kubernetes() -> None:
    versions = {binaries._version(tool) for tool in TOOLS if tool.module == "kubernetes"}
    assert versions == {f"v{binaries.KUBERNETES_VERSION}"}
    assert abs(sum(tool.weight for tool in TOOLS) - 1) < 1e-9


@pytest.mark.parametrize(
    ("text", "numbers"), [("go1.26.8", (1, 26, 8)), ("go version go1.27 linux/amd64", (1, 27)), ("", ()), ("devel", ())]
)
def test_versions_compare_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert binaries._numbers(text) == numbers
    assert binaries._numbers("go1.9.1") < (1, 26)


def test_a_tool_names_its_binary() -> None:
    tool = Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 1)
    assert binary_path(tool).name == "kwok"
    assert binary_path(tool).parent.name.startswith("kwok-")
