"""K5 and K6: integer microseconds, half-open periods of a zone, hours rounded only when shown."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.kernel.gpu_time import day_bounds, days_between, elapsed_us, hours, instant_of, month_bounds

BERLIN = ZoneInfo("Europe/Berlin")
_zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Beirut", "America/Sao_Paulo", "Pacific/Apia",
     "Australia/Lord_Howe", "Africa/Casablanca"]
).map(ZoneInfo)  # fmt: skip
_instants = st.integers(0, (2050 - 2001) * 365 * 86_400).map(
    lambda seconds: datetime(2001, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@pytest.mark.parametrize(("day", "length"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 7, 1), 24)])
def test_k6_days_have_23_24_or_25_hours(day: date, length: int) -> None:
    start, end = day_bounds(day, BERLIN)
    assert elapsed_us(start, end) == length * 3_600_000_000


def test_k5_elapsed_time_is_real_also_across_a_clock_change() -> None:
    start = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    assert elapsed_us(start, datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN)) == 3_600_000_000


def test_a_month_of_a_zone() -> None:
    start, end = month_bounds(datetime(2026, 10, 31, 23, 30, tzinfo=UTC), BERLIN)
    assert start == datetime(2026, 10, 31, 23, tzinfo=UTC)
    assert end == datetime(2026, 11, 30, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (0, "0.0000"),
        (180_000, "0.0001"),
        (179_999, "0.0000"),
        (540_000, "0.0002"),
        (336_000_000, "0.0933"),
        (21_780_000_000, "6.0500"),
    ],
)
def test_k5_hours_are_rounded_half_up_to_four_decimals(microseconds: int, shown: str) -> None:
    assert hours(microseconds) == Decimal(shown)


@given(start=_instants, length=st.integers(0, 40 * 86_400 * 1_000_000), zone=_zones)
def test_k6_days_cover_a_period_without_gap_or_overlap(start: datetime, length: int, zone: ZoneInfo) -> None:
    end = start + timedelta(microseconds=length)
    parts = list(days_between(start, end, zone))
    assert sum(elapsed_us(begun, ended) for _, begun, ended in parts) == length
    assert all(one[2] == two[1] for one, two in pairwise(parts))
    assert all(begun.astimezone(zone).date() == day for day, begun, _ in parts)
    assert len({day for day, _, _ in parts}) == len(parts)


@pytest.mark.parametrize("text", [None, 7, "", "yesterday", "2026-11-03T10:00:00", "2026-11-03", "2026-13-01T00:00:00Z"])
def test_what_is_no_instant_is_none(text: object) -> None:
    assert instant_of(text) is None


def test_stamps_with_fractions_and_offsets_are_instants() -> None:
    assert instant_of("2026-11-03T10:00:00.250000Z") == datetime(2026, 11, 3, 10, 0, 0, 250_000, tzinfo=UTC)
    assert instant_of("2026-11-03T12:00:00+02:00") == datetime(2026, 11, 3, 10, tzinfo=UTC)
