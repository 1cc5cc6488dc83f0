"""Conditions in the Kubernetes shape: type, status, reason, message, and when the status last changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Truth(StrEnum):
    """Unknown is a third answer (contract D3)."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """``since`` is an ISO 8601 instant in UTC."""

    type: str
    status: Truth
    reason: str = ""
    message: str = ""
    since: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def merged(old: Iterable[dict[str, Any]], new: Iterable[Condition], at: datetime) -> list[dict[str, Any]]:
    """``new`` as JSON, each keeping the ``since`` of its old twin while the status is the same."""
    before = {item["type"]: item for item in old}
    result = []
    for condition in new:
        twin = before.get(condition.type)
        kept = twin["since"] if twin and twin["status"] == condition.status and twin.get("since") else at.isoformat()
        result.append({**condition.as_json(), "status": str(condition.status), "since": kept})
    return result
