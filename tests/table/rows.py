"""What one row of the table says, and the few shapes that nearly every row has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver

from tests.table.world import ANONYMOUS

CALLERS = (
    ANONYMOUS,
    "outsider",
    "viewer",
    "member",
    "lead",
    "org_admin",
    "fleet_operator",
    "auditor",
    "platform_admin",
)
READERS = frozenset({"viewer", "member", "lead", "org_admin", "auditor"})
"""Who may read the project; for the others it does not exist (A1)."""

MEMBERS = frozenset({"member", "lead", "org_admin"})
LEADS = frozenset({"lead", "org_admin"})
ORGANIZATION_SEEN = READERS | {"platform_admin"}
EVERYBODY = frozenset(CALLERS) - {ANONYMOUS}

Ids = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """``route`` is the URL's name, ``path`` maps its parameters to names of the world's ids.

    ``expected`` maps each caller to a status. ``hidden``: the address names a tenant's object, so that for a stranger it
    answers exactly as an id that never existed. ``body`` makes the JSON (REST) or form (pages) from the ids.
    """

    route: str
    method: str
    expected: Mapping[str, int]
    path: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[Ids], dict[str, Any]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False
    writes: bool = True

    @property
    def changes(self) -> bool:
        """Whether it changes anything; ``writes`` False is a POST that only computes."""
        return self.method != "GET" and self.writes

    def __str__(self) -> str:
        return f"{self.method} {self.route}"


def table(
    *, may: frozenset[str], ok: int, sees: frozenset[str], blind: int = 404, refused: int = 403, nobody: int = 401
) -> dict[str, int]:
    """``may``: ``ok``. Those who only see it: ``refused``. The others: ``blind``. Not signed in: ``nobody``."""
    answer = {}
    for caller in CALLERS:
        if caller == ANONYMOUS:
            answer[caller] = nobody
        elif caller in may:
            answer[caller] = ok
        else:
            answer[caller] = refused if caller in sees else blind
    return answer


def routes(patterns: list[Any]) -> Iterator[URLPattern]:
    """Every route of a URLconf, those of what it includes too."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns)
        else:
            yield pattern
