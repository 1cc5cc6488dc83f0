"""What a grant lets a project hold (contract Q1), as pure arithmetic and checks of an asked grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.domain.grant_states import USABLE, GrantState

DEVICES_MAX = 100_000
HOURS_MAX = 100_000_000
HOURS_PER_MONTH = 730
"""What a month counts in estimates (M3)."""


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """The terms a hold is measured against; instants are aware."""

    devices: int
    state: GrantState
    starts_at: datetime
    ends_at: datetime | None

    def usable_at(self, at: datetime) -> bool:
        """Whether something new may be held on it at ``at``: half-open [starts_at, ends_at), whatever a sweep has marked."""
        return self.state in USABLE and self.starts_at <= at and (self.ends_at is None or at < self.ends_at)


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """``refusal`` is "" when the hold fits; ``free`` is what the others leave, never below 0."""

    free: int
    refusal: str


def hold_answer(terms: GrantTerms, *, others: int, wanted: int, at: datetime) -> HoldAnswer:
    """May a consumer hold ``wanted`` devices in all, while the other consumers of the grant hold ``others``?"""
    free = max(0, terms.devices - others)
    if not terms.usable_at(at):
        return HoldAnswer(free=0, refusal=_why_unusable(terms, at))
    if wanted > free:
        return HoldAnswer(
            free=free,
            refusal=(
                f"This needs {wanted} devices; the grant has {terms.devices}, others hold {others}, {free} are free. "
                "Ask for fewer, free some, or ask for a larger grant."
            ),
        )
    return HoldAnswer(free=free, refusal="")


def _why_unusable(terms: GrantTerms, at: datetime) -> str:
    if terms.state in USABLE or terms.state is GrantState.PENDING:
        if at < terms.starts_at:
            return f"The grant starts at {terms.starts_at:%Y-%m-%d %H:%M} UTC."
        if terms.ends_at is not None and at >= terms.ends_at:
            return f"The grant ended at {terms.ends_at:%Y-%m-%d %H:%M} UTC: ask for a renewal."
    return f"The grant is {terms.state.value}: ask for a new one."


@dataclass(frozen=True, slots=True)
class GrantAsk:
    """The payload of a request of kind ``grant``, typed. ``profile`` is the profile's name."""

    profile: str
    devices: int
    gpu_hours_per_month: int | None
    starts_at: datetime | None
    ends_at: datetime | None

    def as_payload(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "devices": self.devices,
            "gpu_hours_per_month": self.gpu_hours_per_month,
            "starts_at": self.starts_at.isoformat() if self.starts_at else None,
            "ends_at": self.ends_at.isoformat() if self.ends_at else None,
        }


_FIELDS = frozenset({"profile", "devices", "gpu_hours_per_month", "starts_at", "ends_at"})


def parsed_ask(payload: Mapping[str, Any]) -> tuple[GrantAsk | None, dict[str, list[str]]]:
    """The ask, or (None, problems by field). Whole numbers; ISO 8601 instants with a zone; "" and null are absent."""
    problems: dict[str, list[str]] = {
        str(name): [f"Not a field of a grant: {', '.join(sorted(_FIELDS))}."] for name in payload if name not in _FIELDS
    }
    profile = payload.get("profile")
    if not isinstance(profile, str) or not profile:
        problems["profile"] = ["Name a GPU profile."]
        profile = ""
    devices = _whole(payload.get("devices"), "devices", DEVICES_MAX, problems)
    if devices is None and "devices" not in problems:
        problems["devices"] = ["Say how many devices at once."]
    hours = _whole(payload.get("gpu_hours_per_month"), "gpu_hours_per_month", HOURS_MAX, problems)
    starts_at = _instant(payload.get("starts_at"), "starts_at", problems)
    ends_at = _instant(payload.get("ends_at"), "ends_at", problems)
    if starts_at and ends_at and ends_at <= starts_at:
        problems["ends_at"] = ["The end comes after the start."]
    if problems or devices is None:
        return None, problems
    return GrantAsk(profile, devices, hours, starts_at, ends_at), {}


def _whole(value: Any, name: str, top: int, problems: dict[str, list[str]]) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 12:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= top:
        problems[name] = [f"A whole number from 1 to {top}."]
        return None
    return value


def _instant(value: Any, name: str, problems: dict[str, list[str]]) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None or not 2000 <= at.year <= 2200:
        problems[name] = ["An instant with a zone, such as 2027-01-31T00:00:00+00:00."]
        return None
    return at
