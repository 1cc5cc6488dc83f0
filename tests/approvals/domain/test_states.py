"""The table of request states, every pair of it (C37)."""

from itertools import product

import pytest

from portal.approvals.domain.previews import Check, CheckVerdict, Preview
from portal.approvals.domain.states import MOVES, OPEN, UNDOES_FULFILMENT, RequestState, may_move

ENDS = {
    RequestState.DENIED,
    RequestState.WITHDRAWN,
    RequestState.EXPIRED,
    RequestState.REVOKED,
    RequestState.FAILED,
}


def test_every_state_has_its_row():
    assert set(MOVES) == set(RequestState)


@pytest.mark.parametrize(("old", "new"), list(product(RequestState, RequestState)))
def test_every_pair(old, new):
    assert may_move(old, new) == (new in MOVES[old])
    if old in ENDS:
        assert not may_move(old, new)
    if old is new:
        assert not may_move(old, new)
    if new is RequestState.DRAFT:
        assert not may_move(old, new)


def test_nothing_is_fulfilled_that_was_not_approved():
    assert {old for old in RequestState if may_move(old, RequestState.FULFILLED)} == {RequestState.APPROVED}


def test_what_undoes_ends_both_what_is_approved_and_what_is_fulfilled():
    for new in UNDOES_FULFILMENT:
        assert may_move(RequestState.APPROVED, new)
        assert may_move(RequestState.FULFILLED, new)


def test_every_live_state_can_end():
    for state in set(RequestState) - ENDS:
        assert MOVES[state] & ENDS, state
    assert OPEN.isdisjoint(ENDS)


def test_refusals_of_a_preview():
    refuse = Check("a", CheckVerdict.REFUSE, "too large")
    preview = Preview(checks=(Check("b", CheckVerdict.OK, ""), refuse, Check("c", CheckVerdict.UNKNOWN, "")))
    assert preview.refusals == (refuse,)
