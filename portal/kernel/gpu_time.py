"""Time that is billed (contract K5, K6): instants, integer microseconds, periods of a zone, and how hours are shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

MICROSECONDS_PER_HOUR = 3_600_000_000
SHOWN_DECIMALS = Decimal("0.0001")
EARLIEST_YEAR = 2000
LATEST_YEAR = 2100


def instant_of(value: object) -> datetime | None:
    """An RFC 3339 stamp of the API server as an instant in UTC; None for anything that is none, or has no zone."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return parsed.astimezone(UTC) if parsed.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def elapsed_us(start: datetime, end: datetime) -> int:
    """Real elapsed time in whole microseconds (K5), whatever zones the two instants are written in."""
    return (end.astimezone(UTC) - start.astimezone(UTC)) // timedelta(microseconds=1)


def hours(microseconds: int) -> Decimal:
    """Hours for showing: half-up to 4 decimals, from the unrounded total (K5)."""
    return (Decimal(microseconds) / MICROSECONDS_PER_HOUR).quantize(SHOWN_DECIMALS, rounding=ROUND_HALF_UP)


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """The instant at which ``day`` begins on the wall clocks of ``zone`` (K6); a skipped midnight is its first instant."""
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def day_bounds(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """[start, end) of one day: 23, 24 or 25 hours of real time."""
    return day_start(day, zone), day_start(day + timedelta(days=1), zone)


def month_bounds(at: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """[start, end) of the month that ``at`` falls in, by the wall clocks of ``zone``."""
    first = at.astimezone(zone).date().replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return day_start(first, zone), day_start(following, zone)


def days_between(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[date, datetime, datetime]]:
    """Each day of ``zone`` that [start, end) touches, with its part of it: (day, from, to), without gap or overlap."""
    day = start.astimezone(zone).date()
    cursor = start
    while cursor < end:
        following = day_start(day + timedelta(days=1), zone)
        if following > cursor:
            yield day, cursor, min(following, end)
            cursor = following
        day += timedelta(days=1)
