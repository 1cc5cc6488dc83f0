from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.drain import DrainBudget, drain_problem

seconds = st.integers(1, 10_000)


def test_c44_the_case_as_reported() -> None:
    assert "615" in drain_problem(prestop=15, drain=600, grace=600)
    assert drain_problem(prestop=15, drain=600, grace=660) == ""


@given(seconds, seconds, seconds)
def test_a_grace_is_taken_exactly_when_it_exceeds_the_sum(prestop: int, drain: int, grace: int) -> None:
    assert (drain_problem(prestop=prestop, drain=drain, grace=grace) == "") is (grace > prestop + drain)


@given(seconds, seconds, st.integers(1, 100))
def test_every_budget_gives_itself_enough_grace(prestop: int, drain: int, margin: int) -> None:
    budget = DrainBudget(prestop=prestop, drain=drain, margin=margin)
    assert drain_problem(prestop=prestop, drain=drain, grace=budget.grace) == ""


@pytest.mark.parametrize("prestop", [0, -1])
def test_without_a_prestop_nothing_is_long_enough(prestop: int) -> None:
    assert "preStop" in drain_problem(prestop=prestop, drain=1, grace=10**6)
