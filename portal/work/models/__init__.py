"""Rows that loops make true, and what processes say of themselves."""

from portal.work.models.heartbeats import Heartbeat
from portal.work.models.idempotency import IdempotencyRecord
from portal.work.models.reconciled import Desired, ReconciledRow

__all__ = ["Desired", "Heartbeat", "IdempotencyRecord", "ReconciledRow"]
