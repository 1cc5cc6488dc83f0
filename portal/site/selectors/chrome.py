"""What the frame around every page shows to its reader."""

from __future__ import annotations

from dataclasses import dataclass

from portal.approvals.selectors.requests import inbox_count
from portal.audit.domain.actors import Actor


@dataclass(frozen=True, slots=True)
class Chrome:
    """``inbox`` is the number of requests that wait for this person's decision."""

    inbox: int


def chrome_of(*, actor: Actor) -> Chrome:
    """The frame for ``actor``, in one query."""
    return Chrome(inbox=inbox_count(actor=actor))
