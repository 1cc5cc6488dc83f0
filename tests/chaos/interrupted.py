"""A port that stops at a chosen call, for as long as something else takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleet.cluster import ClusterPort

Moment = Callable[[], None]


class Interrupted:
    """Passes every call on to ``port``; before (or after) the chosen call of a method, counted from 1, runs ``moment`` once.

    What runs there sees the world as other workers do while this one is stalled between two instructions.
    """

    def __init__(self, port: ClusterPort, method: str, number: int, moment: Moment, *, after: bool = False) -> None:
        self._port, self._method, self._moment, self._after = port, method, moment, after
        self._left = number

    @property
    def happened(self) -> bool:
        return self._left <= 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if name != self._method or self._left <= 0:
            return call

        def stopped(*args: Any, **options: Any) -> Any:
            self._left -= 1
            chosen = self._left == 0
            if chosen and not self._after:
                self._moment()
            answer = call(*args, **options)
            if chosen and self._after:
                self._moment()
            return answer

        return stopped
