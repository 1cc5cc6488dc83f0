"""What a request's author and its decider are told before they act; unknown is a verdict of its own (contract M1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckVerdict(StrEnum):
    """``refuse`` means it can never be approved as it stands, so submitting is refused; ``warn`` lets people decide."""

    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One question that was asked of the payload. ``text`` has the numbers and the way out.

    ``field`` is the payload's field that the verdict is about, "" when it is none in particular.
    """

    name: str
    verdict: CheckVerdict
    text: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """``devices`` is what approval would hold; None when it holds none or the shape is not known yet.

    ``facts`` are (label, text) pairs to show as they are, such as ``("GPU-hours a month", "1,460")``.
    """

    checks: tuple[Check, ...] = ()
    devices: int | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def refusals(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict is CheckVerdict.REFUSE)
