"""The lines of a watch: cut out of chunks, and read one by one (C17). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from fleet.cluster.answers import error_from_status
from fleet.cluster.port import BadLine, WatchEvent

_EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_SHOWN = 200


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes | BadLine]:
    """Lines without their newline; what is left without one at the end is a BadLine: a last event may hide in it."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield BadLine(_shown(rest), "the stream ended inside a line")


def event_of(line: bytes) -> WatchEvent | BadLine:
    """One line as an event. An ERROR event is raised as the error that it carries (410 = Gone)."""
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return BadLine(_shown(line), f"not JSON: {error}" if line.strip() else "a blank line")
    if not isinstance(parsed, dict) or not isinstance(parsed.get("object"), dict):
        return BadLine(_shown(line), "not an event with an object")
    kind, content = parsed.get("type"), parsed["object"]
    if kind == "ERROR":
        raise error_from_status(content)
    if kind not in _EVENTS:
        return BadLine(_shown(line), f"an event of the unknown type {kind!r}")
    meta = content.get("metadata")
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(version, str) or not version:
        return BadLine(_shown(line), "an object without a resourceVersion")
    if kind != "BOOKMARK" and not meta.get("uid"):
        return BadLine(_shown(line), "an object without a uid")
    return WatchEvent(kind, content, version)


def _shown(line: bytes) -> str:
    return line[:_SHOWN].decode(errors="replace")
