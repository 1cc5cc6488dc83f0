"""The engine as a process: llama.cpp's server on one address, ended by SIGTERM, clear when it cannot start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from deploy.local.engine_model import ensure_model
from deploy.local.ports import free_port
from deploy.local.state import CHECKOUT
from tests.cluster import eventually

Start = Callable[[int], subprocess.Popen[str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def start(model: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(port: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "deploy.local.engine", "--model", str(model), "--host", "127.0.0.1"]
        process = subprocess.Popen(
            [*command, "--port", str(port), "--alias", "tiny"],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def healthy(port: int) -> bool:
    return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_the_model_is_small_and_made_once(model: Path) -> None:
    before = model.stat()
    assert 100_000 < before.st_size < 1_000_000
    assert ensure_model(model).stat().st_mtime_ns == before.st_mtime_ns


def test_it_answers_in_words_with_exact_usage_and_ends_on_sigterm(start: Start) -> None:
    port = free_port()
    process = start(port)
    eventually(lambda: healthy(port))
    ends = set()
    for number in range(20):
        question = {"messages": [{"role": "user", "content": f"question {number}"}]}
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=question, timeout=60).json()
        words = answer["choices"][0]["message"]["content"].split()
        ends.add(answer["choices"][0]["finish_reason"])
        assert all(word.isalpha() for word in words)
        assert answer["usage"]["completion_tokens"] - len(words) in {0, 1}, "one more where the end was a token too"
    assert "stop" in ends, "some answers end by themselves"
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert "llamacpp:requests_processing 0" in metrics
    process.terminate()
    assert process.wait(timeout=10) == 0


def test_a_taken_port_is_named(start: Start) -> None:
    port = free_port()
    start(port)
    eventually(lambda: healthy(port))
    second = start(port)
    output, _ = second.communicate(timeout=30)
    assert second.returncode == 1
    assert f"llama.cpp did not start on 127.0.0.1:{port}" in output
