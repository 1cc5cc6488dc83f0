"""When nothing watched a cluster (contract K9): a gap is shown, and nothing is invented for it."""

from __future__ import annotations

from datetime import datetime, timedelta

GAP_AFTER = timedelta(seconds=120)
"""Shorter silences are the ordinary life of a watch: the API server sends a bookmark about once a minute."""

UNSEEN_AFTER = timedelta(seconds=15)
"""A cluster that failed to answer for longer is shown as not reachable."""


def gap_start(*, covered_at: datetime | None, at: datetime, longest: timedelta = GAP_AFTER) -> datetime | None:
    """Start of the gap that ends at ``at`` (or goes on there), or None when the cluster was covered closely enough.

    ``covered_at``: the last instant at which a list or a live watch proved what is there; None: never yet, so no gap.
    ``longest``: the silence that the observing loop itself may leave between two looks.
    """
    if covered_at is None or at - covered_at <= longest:
        return None
    return covered_at
