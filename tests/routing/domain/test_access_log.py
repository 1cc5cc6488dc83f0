"""Lines of the access log in any order and any number say the same (K8)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from routing.domain.access_log import last_uses, use_of

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
uses = st.lists(st.tuples(st.sampled_from(["key_1", "key_2", None]), st.integers(0, 10_000)), max_size=30)


def line(key: str | None, milliseconds: int) -> bytes:
    at = AT + timedelta(milliseconds=milliseconds)
    return json.dumps({"key": key, "started_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}).encode()


@given(said=uses, data=st.data())
def test_order_repeats_and_pieces_do_not_matter(said: list[tuple[str | None, int]], data: st.DataObject) -> None:
    lines = [line(*one) for one in said]
    expected = {key: AT + timedelta(milliseconds=max(ms for k, ms in said if k == key)) for key, _ in said if key}
    shuffled = data.draw(st.permutations([*lines, *lines]))
    assert last_uses(shuffled) == expected
    cut = data.draw(st.integers(0, len(lines)))
    first, second = last_uses(lines[:cut]), last_uses(lines[cut:])
    merged = {key: max(found[key] for found in (first, second) if key in found) for key in {*first, *second}}
    assert merged == expected


@given(st.binary(max_size=80))
def test_any_bytes_are_a_use_or_nothing(raw: bytes) -> None:
    assert use_of(raw) is None


def test_a_time_without_a_zone_is_no_use() -> None:
    assert use_of(b'{"key": "key_1", "started_at": "2026-12-01T09:00:00"}') is None
    assert use_of(b'{"key": 5, "started_at": "2026-12-01T09:00:00Z"}') is None
    assert use_of(b'{"key": "key_1", "started_at": 5}') is None
