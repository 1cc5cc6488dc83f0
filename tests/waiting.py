"""Waiting in tests: on the condition itself, with a deadline that fails the test and says what was last seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_pause = threading.Event()


def eventually(check: Callable[[], T], *, within: float = 30.0, every: float = 0.1, what: str = "") -> T:
    """Call ``check`` until it returns something true, at most ``within`` seconds; returns that, else fails the test."""
    deadline = time.monotonic() + within
    seen: T | None = None
    while time.monotonic() < deadline:
        seen = check()
        if seen:
            return seen
        _pause.wait(every)
    raise AssertionError(f"not within {within:g} s: {what or getattr(check, '__name__', 'condition')}; last seen: {seen!r}")
