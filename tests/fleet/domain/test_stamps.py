from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.stamps import GENERATION, Owner, generation_of, hash_of, is_newer, owner_of, spec_hash, stamped

OWNER = Owner("deployment", "dep_1", "prj_1")


def manifest(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "data": data}


def test_a_stamped_manifest_says_whose_and_which() -> None:
    content = stamped(manifest(a="b"), owner=OWNER, generation=7, request_id="req")
    assert owner_of(content) == OWNER
    assert generation_of(content) == 7
    assert hash_of(content) == spec_hash(content) != ""
    assert content["metadata"]["annotations"]["slipway/request-id"] == "req"


def test_stamping_leaves_the_original_alone() -> None:
    original = manifest(a="b")
    before = copy.deepcopy(original)
    stamped(original, owner=OWNER, generation=1)
    assert original == before


def test_the_hash_follows_the_content_and_not_the_stamps() -> None:
    one = stamped(manifest(a="b"), owner=OWNER, generation=1, request_id="r1")
    two = stamped(manifest(a="b"), owner=OWNER, generation=2, request_id="r2")
    other = stamped(manifest(a="c"), owner=OWNER, generation=2, request_id="r2")
    assert hash_of(one) == hash_of(two) != hash_of(other)
    assert hash_of(one) != hash_of(stamped(manifest(a="b"), owner=Owner("deployment", "dep_2", "prj_1"), generation=1))


def test_stamping_twice_changes_nothing() -> None:
    once = stamped(manifest(a="b"), owner=OWNER, generation=3)
    assert stamped(once, owner=OWNER, generation=3) == once


def test_key_order_does_not_matter_to_the_hash() -> None:
    one = stamped(manifest(a="1", b="2"), owner=OWNER, generation=1)
    assert hash_of(one) == hash_of(stamped(manifest(b="2", a="1"), owner=OWNER, generation=1))


@pytest.mark.parametrize(
    "labels",
    [
        None,
        {},
        {"slipway/managed": "true"},
        {"slipway/managed": "false", "slipway/kind": "deployment", "slipway/id": "d", "slipway/project": "p"},
        {"slipway/managed": "true", "slipway/kind": "deployment", "slipway/id": "d"},
        {"slipway/managed": "true", "slipway/kind": "", "slipway/id": "d", "slipway/project": "p"},
    ],
)
def test_d5_an_object_without_all_labels_is_nobodys(labels: dict[str, str] | None) -> None:
    assert owner_of({"metadata": {"labels": labels}}) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "\u0661", " 1", "9" * 30, "1_0"])
def test_a_generation_that_cannot_be_read_is_none(text: str) -> None:
    live = {"metadata": {"annotations": {GENERATION: text}}}
    assert generation_of(live) is None
    assert not is_newer(live, 0)


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_d4_newer_is_strictly_later(stamp: int, mine: int) -> None:
    live = stamped(manifest(), owner=OWNER, generation=stamp)
    assert is_newer(live, mine) is (stamp > mine)


def test_an_object_without_metadata_is_nobodys_and_old() -> None:
    assert owner_of({}) is None
    assert not is_newer({}, 1)
    assert hash_of({}) == ""
