"""What the door's access log says, line by line (``routing.envoy.listeners`` writes the format)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Use:
    """One admitted call: by which key (public id), and when it began."""

    key_id: str
    at: datetime


def use_of(line: bytes) -> Use | None:
    """The call a line tells of; None for calls without a key and for lines that cannot be read."""
    try:
        entry = json.loads(line)
        key_id = entry["key"]
        at = datetime.fromisoformat(entry["started_at"])
    except (ValueError, KeyError, TypeError):
        return None
    return Use(key_id=key_id, at=at) if isinstance(key_id, str) and key_id and at.tzinfo is not None else None


def last_uses(lines: Iterable[bytes]) -> dict[str, datetime]:
    """Public id of each key -> when its latest call began; the order and the repeats of lines do not matter (K8)."""
    latest: dict[str, datetime] = {}
    for line in lines:
        use = use_of(line)
        if use is not None:
            latest[use.key_id] = max(use.at, latest.get(use.key_id, use.at))
    return latest
