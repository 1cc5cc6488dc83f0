"""Secrets: unlike each other, of one shape, found by digest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.domain.keys import bearer, digest, has_the_shape, new_secret


def test_a_thousand_secrets_are_a_thousand() -> None:
    made = [new_secret() for _ in range(1000)]
    assert len({one.secret for one in made}) == len({one.sha256 for one in made}) == 1000
    for one in made:
        assert has_the_shape(one.secret)
        assert one.secret.startswith(one.prefix)
        assert len(one.prefix) == 12
        assert one.sha256 == digest(one.secret)
        assert bearer(f"Bearer {one.secret}") == one.secret


@given(st.text(max_size=60))
def test_other_text_has_not_the_shape_of_a_key(text: str) -> None:
    assert not has_the_shape(text) or text.isascii()


@pytest.mark.parametrize(
    "text", ["slk_" + "a" * 39, "slk_" + "a" * 41, "slp_" + "a" * 40, "slk_" + "é" * 40, "slk_" + "a" * 40 + "\n"]
)
def test_near_keys_are_none(text: str) -> None:
    assert not has_the_shape(text)


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer ", "Basic dXNlcg==", "slk_" + "a" * 40])
def test_no_bearer_no_secret(said: str) -> None:
    assert bearer(said) == ""
