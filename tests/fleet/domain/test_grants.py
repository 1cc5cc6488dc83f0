"""The arithmetic of a hold, and the shape of an asked grant."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.grant_states import LIVE, MOVES, USABLE, GrantState, may_move
from fleet.domain.grants import GrantTerms, hold_answer, parsed_ask

AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
counts = st.integers(min_value=0, max_value=10_000)


def terms(devices=8, state=GrantState.ACTIVE, starts_at=AT - HOUR, ends_at=None):
    return GrantTerms(devices=devices, state=state, starts_at=starts_at, ends_at=ends_at)


@given(devices=counts, others=counts, wanted=counts)
def test_a_hold_fits_exactly_when_the_sum_does(devices, others, wanted):
    answer = hold_answer(terms(devices), others=others, wanted=wanted, at=AT)
    assert answer.free == max(0, devices - others)
    assert (answer.refusal == "") == (wanted <= answer.free)


@given(devices=counts, others=counts, wanted=counts, state=st.sampled_from(list(GrantState)))
def test_an_unusable_grant_has_nothing_free(devices, others, wanted, state):
    answer = hold_answer(terms(devices, state), others=others, wanted=wanted, at=AT)
    if state not in USABLE:
        assert answer.free == 0
        assert answer.refusal


def test_a_refusal_has_the_numbers_and_the_way_out():
    refusal = hold_answer(terms(8), others=5, wanted=4, at=AT).refusal
    assert refusal.startswith("This needs 4 devices; the grant has 8, others hold 5, 3 are free.")
    assert "larger grant" in refusal


@pytest.mark.parametrize(
    ("starts_at", "ends_at", "usable"),
    [
        (AT, None, True),
        (AT + timedelta(microseconds=1), None, False),
        (AT - HOUR, AT + timedelta(microseconds=1), True),
        (AT - HOUR, AT, False),
    ],
)
def test_the_period_is_half_open_whatever_a_sweep_has_marked(starts_at, ends_at, usable):
    one = terms(starts_at=starts_at, ends_at=ends_at)
    assert one.usable_at(AT) == usable
    answer = hold_answer(one, others=0, wanted=1, at=AT)
    assert bool(answer.refusal) != usable


@pytest.mark.parametrize(
    ("state", "starts_at", "ends_at", "words"),
    [
        (GrantState.PENDING, AT + HOUR, None, "starts at 2026-12-01 13:00 UTC"),
        (GrantState.ACTIVE, AT - 2 * HOUR, AT - HOUR, "ended at 2026-12-01 11:00 UTC"),
        (GrantState.REVOKED, AT - HOUR, None, "is revoked"),
        (GrantState.CLOSED, AT - HOUR, None, "is closed"),
        (GrantState.EXPIRED, AT - HOUR, None, "is expired"),
    ],
)
def test_why_it_is_unusable_is_said(state, starts_at, ends_at, words):
    assert words in hold_answer(terms(8, state, starts_at, ends_at), others=0, wanted=1, at=AT).refusal


@pytest.mark.parametrize(("old", "new"), list(product(GrantState, GrantState)))
def test_every_pair_of_grant_states(old, new):
    assert may_move(old, new) == (new in MOVES[old])
    if old not in LIVE:
        assert not MOVES[old]
    if may_move(old, new):
        assert old is not new


def test_only_live_grants_are_usable():
    assert USABLE < LIVE


GOOD = {"profile": "h100", "devices": 4}


@pytest.mark.parametrize(
    "payload",
    [
        GOOD,
        {**GOOD, "devices": "4"},
        {**GOOD, "gpu_hours_per_month": "", "starts_at": None, "ends_at": ""},
        {**GOOD, "gpu_hours_per_month": 720, "starts_at": "2026-12-01T00:00:00Z", "ends_at": "2027-01-01T00:00:00+01:00"},
    ],
)
def test_a_good_ask_survives_the_round_trip(payload):
    ask, problems = parsed_ask(payload)
    assert problems == {}
    assert parsed_ask(ask.as_payload()) == (ask, {})
    assert ask.devices == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"profile": ""}, "profile"),
        ({"profile": 7}, "profile"),
        ({"devices": None}, "devices"),
        ({"devices": 0}, "devices"),
        ({"devices": -1}, "devices"),
        ({"devices": 1.5}, "devices"),
        ({"devices": True}, "devices"),
        ({"devices": "1_0"}, "devices"),
        ({"devices": " 1"}, "devices"),
        ({"devices": "1e3"}, "devices"),
        ({"devices": "٣"}, "devices"),
        ({"devices": 100_001}, "devices"),
        ({"devices": "9" * 5000}, "devices"),
        ({"gpu_hours_per_month": 0}, "gpu_hours_per_month"),
        ({"gpu_hours_per_month": "many"}, "gpu_hours_per_month"),
        ({"starts_at": "2026-12-01"}, "starts_at"),
        ({"starts_at": "2026-12-01T00:00:00"}, "starts_at"),
        ({"starts_at": "1026-12-01T00:00:00Z"}, "starts_at"),
        ({"starts_at": 5}, "starts_at"),
        ({"ends_at": "soon"}, "ends_at"),
        ({"starts_at": "2026-12-02T00:00:00Z", "ends_at": "2026-12-02T00:00:00Z"}, "ends_at"),
        ({"device": 3}, "device"),
    ],
)
def test_a_bad_ask_names_its_field(changes, field):
    ask, problems = parsed_ask({**GOOD, **changes})
    assert ask is None
    assert list(problems) == [field]


@given(
    st.dictionaries(
        st.sampled_from(["profile", "devices", "gpu_hours_per_month", "starts_at", "ends_at", "x"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(st.integers())
        | st.datetimes().map(str),
    )
)
def test_nothing_makes_it_crash(payload):
    ask, problems = parsed_ask(payload)
    assert (ask is None) == bool(problems)
