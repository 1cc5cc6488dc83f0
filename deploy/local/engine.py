"""One pod's inference server: llama.cpp's own HTTP server, as a process of its own so that it takes signals as a pod does.

SIGTERM: requests in flight end whole, then it exits 0 (contract G5). What outlasts the pod's grace gets SIGKILL from the
agent. Run by deploy/local/agent.py: ``python -m deploy.local.engine --model … --host … --port … --alias …``.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
import urllib.error
import urllib.request

import xllamacpp

_SLOTS = 4
_ANSWER_TOKENS = 512
_IN_FLIGHT = re.compile(r"^llamacpp:requests_(?:processing|deferred) (\d+)", re.MULTILINE)


def parameters(*, model: str, host: str, port: int, alias: str) -> xllamacpp.CommonParams:
    """A small server: one thread computes, four requests at once."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {alias}
    params.hostnames = [host]
    params.port = port
    params.n_ctx = 8192
    params.n_parallel = _SLOTS
    params.n_predict = _ANSWER_TOKENS
    params.n_threads_http = 8
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.warmup = False
    params.ui = False
    params.verbosity = 1
    return params


def in_flight(address: str) -> int:
    """Requests being answered or waiting for a slot; 0 when the server no longer answers."""
    try:
        with urllib.request.urlopen(f"{address}/metrics", timeout=2) as answer:
            return sum(int(count) for count in _IN_FLIGHT.findall(answer.read().decode()))
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return 0


def main() -> None:
    """Serve until SIGTERM, then until nothing is in flight."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--alias", required=True)
    wanted = parser.parse_args()
    asked_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: asked_to_end.set())
    try:
        server = xllamacpp.Server(parameters(model=wanted.model, host=wanted.host, port=wanted.port, alias=wanted.alias))
    except RuntimeError as error:
        sys.exit(f"llama.cpp did not start on {wanted.host}:{wanted.port}: {error}")
    parent = os.getppid()
    asked_to_end.wait()
    # Without its agent there is no pod any more whose answers would be worth waiting for.
    while os.getppid() == parent and in_flight(server.listening_address):
        threading.Event().wait(0.1)


if __name__ == "__main__":
    main()
