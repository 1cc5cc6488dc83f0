"""Doing many things at once in a test: real threads, each with its own database connection, started together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, connections

from portal.kernel.errors import SlipwayError


def all_at_once(acts: Sequence[Callable[[], Any]], *, within: float = 120.0) -> list[Any]:
    """What each of ``acts`` returned, or the SlipwayError it ended with, in their order; any other error fails the test."""
    barrier = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)
    failures: list[BaseException] = []

    def run(index: int) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(timeout=60)
            results[index] = acts[index]()
        except SlipwayError as error:
            results[index] = error
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=within)
        assert not thread.is_alive(), "an act did not end"
    if failures:
        raise failures[0]
    return results
