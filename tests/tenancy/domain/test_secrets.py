import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.tenancy.domain.secrets import new_token_secret, same_secret, token_prefix


def test_a_secret_is_found_by_its_prefix_and_known_by_its_hash_only():
    fresh = new_token_secret()
    assert fresh.secret.startswith("slp_")
    assert token_prefix(fresh.secret) == fresh.prefix
    assert fresh.sha256 == hashlib.sha256(fresh.secret.encode()).hexdigest()
    assert same_secret(fresh.secret, fresh.sha256)
    assert len(fresh.prefix) <= 16


def test_two_secrets_differ():
    assert len({new_token_secret().secret for _ in range(200)}) == 200


@pytest.mark.parametrize(
    "change", [lambda s: s[:-1], lambda s: s + "x", lambda s: s.upper(), lambda s: " " + s, lambda s: s + "\n"]
)
def test_a_changed_secret_is_not_the_same(change):
    fresh = new_token_secret()
    assert not same_secret(change(fresh.secret), fresh.sha256)


@given(st.text(max_size=80))
def test_nothing_else_has_the_shape_of_a_token(text):
    assert token_prefix(text) == ""
