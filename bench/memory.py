"""Resident memory of each process on the demo fleet, after 300 page loads and 60 s of loops.

A web process should stay under 200 MB, a worker process under 200 MB, the observer under 150 MB.
"""

from __future__ import annotations

import time

import httpx
import psutil

from bench.figures import Figure, report
from bench.running import running

_LOADS = 300
_SETTLE_SECONDS = 60
_MB = 1_000_000


def main() -> None:
    """Start everything, use it, and print the largest resident size of each kind of process."""
    with running() as (stack, _):
        with httpx.Client(base_url=stack.web_url) as client:
            for _number in range(_LOADS):
                client.get("/accounts/login/")
        time.sleep(_SETTLE_SECONDS)
        sizes: dict[str, list[float]] = {}
        for name, pid in stack.supervisor.pids().items():
            process = psutil.Process(pid)
            family = [process, *process.children(recursive=True)]
            sizes[name] = sorted((one.memory_info().rss / _MB for one in family), reverse=True)
        figures = [Figure(f"{name}_rss", round(values[0], 1), "MB") for name, values in sizes.items()]
        report(figures, {"each_process_mb": {name: [round(value, 1) for value in values] for name, values in sizes.items()}})


if __name__ == "__main__":
    main()
