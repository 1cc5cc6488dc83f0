from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from portal.work.domain.outcomes import BACKOFF_CAP, BACKOFF_FIRST, backoff


def test_it_doubles_from_one_second_to_the_cap() -> None:
    assert [backoff(number).total_seconds() for number in range(1, 11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


@given(st.integers(-5, 10**9))
def test_never_longer_than_the_cap_nor_shorter_than_the_first(attempts: int) -> None:
    assert BACKOFF_FIRST <= backoff(attempts) <= BACKOFF_CAP
    assert backoff(attempts) <= backoff(attempts + 1) <= backoff(attempts) * 2 + timedelta(0)
