from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cluster import BadLine, ClusterError, Gone, Unreachable, WatchEvent
from fleet.cluster.lines import event_of, lines_of


def line(kind: str, uid: str = "u", version: str = "10") -> bytes:
    return orjson.dumps({"type": kind, "object": {"metadata": {"uid": uid, "resourceVersion": version}}})


@given(st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text), max_size=8), st.data())
def test_lines_do_not_depend_on_where_chunks_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(one + b"\n" for one in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    bounds = [0, *cuts, len(whole)]
    chunks = [whole[start:end] for start, end in pairwise(bounds)]
    assert list(lines_of(chunks)) == lines


def test_c17_a_last_line_without_its_end_is_not_lost_in_silence() -> None:
    first, last = lines_of([line("ADDED") + b"\n" + line("DELETED")])
    assert first == line("ADDED")
    assert isinstance(last, BadLine)


def test_c17_the_lines_of_the_case() -> None:
    lines = [line("ADDED", "p", "10"), b'{"type":"DELETED","obj', line("BOOKMARK", "", "77"), line("MODIFIED", "q", "78")]
    seen = [event_of(one) for one in lines]
    assert isinstance(seen[0], WatchEvent)
    assert isinstance(seen[1], BadLine)
    assert isinstance(seen[2], WatchEvent)
    assert (seen[2].type, seen[2].resource_version) == ("BOOKMARK", "77")
    assert isinstance(seen[3], WatchEvent)
    assert seen[3].resource_version == "78"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"  ",
        b"null",
        b"[]",
        b"3",
        b'"x"',
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":null}',
        b'{"type":"ADDED","object":{}}',
        b'{"type":"ADDED","object":{"metadata":null}}',
        b'{"type":"ADDED","object":{"metadata":{"uid":"u"}}}',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}',
        b'{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":5}}}',
        b'{"type":"OTHER","object":{"metadata":{}}}',
        b"\xff\xfe",
        b'{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":"1"}}}x',
        b"NaN",
    ],
)
def test_c17_what_is_no_event(text: bytes) -> None:
    assert isinstance(event_of(text), BadLine)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_a_bad_line_or_a_cluster_error(text: bytes) -> None:
    try:
        assert isinstance(event_of(text), WatchEvent | BadLine)
    except ClusterError:
        pass


@pytest.mark.parametrize(
    ("status", "kind"), [({"code": 410, "reason": "Expired"}, Gone), ({"code": 500}, Unreachable), ({}, Unreachable)]
)
def test_c16_an_error_event_is_raised(status: dict[str, object], kind: type[ClusterError]) -> None:
    with pytest.raises(kind):
        event_of(orjson.dumps({"type": "ERROR", "object": {"kind": "Status", **status}}))
