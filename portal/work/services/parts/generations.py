"""Raising a row's generation: the one way in which people's changes reach a loop."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import F, Value
from django.db.models.functions import Coalesce

from portal.kernel.clock import now
from portal.work.models import ReconciledRow


def generation_raise(row: ReconciledRow, **spec: Any) -> None:
    """Write ``spec`` (columns) and a new generation in one UPDATE; the row is due at once and its failures forgotten.

    Runs in the caller's transaction, which also writes the audit row and calls ``hints.nudge``. ``row`` is refreshed.
    """
    if not connection.in_atomic_block:
        raise AssertionError("generation_raise is a part: call it inside the transaction of the change")
    at = now()
    written = {
        **spec,
        "generation": F("generation") + 1,
        "dirty_since": Coalesce(F("dirty_since"), Value(at)),
        "next_attempt_at": at,
        "attempts": 0,
        "crashes": 0,
        "set_aside_reason": "",
    }
    # The base manager: portal.work sits below tenancy, and the caller has found the row through its own scope.
    type(row)._base_manager.filter(pk=row.pk).update(**written)
    row.refresh_from_db(fields=[row._meta.get_field(name).name for name in written])


def attention_clear(row: ReconciledRow) -> None:
    """Take a row that was set aside back into the loop, with its generation as it is (an operator's "try again")."""
    if not connection.in_atomic_block:
        raise AssertionError("attention_clear is a part: call it inside the transaction of the change")
    cleared = {"next_attempt_at": now(), "attempts": 0, "crashes": 0, "set_aside_reason": ""}
    type(row)._base_manager.filter(pk=row.pk).update(**cleared)
    row.refresh_from_db(fields=list(cleared))
