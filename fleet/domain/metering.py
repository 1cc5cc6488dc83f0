"""GPU time from pods (contract §5, K1–K4, K7, K9): when a pod's hold on its devices starts and ends, and how many."""

from __future__ import annotations

from enum import StrEnum


class StartBasis(StrEnum):
    """What proves the start of an interval (K1)."""

    POD_SCHEDULED = "pod_scheduled"
    START_TIME = "start_time"


class EndBasis(StrEnum):
    """What proves the end of an interval (K1), strongest first."""

    CONTAINER_FINISHED = "container_finished"
    READY_FALSE = "ready_false"
    DELETED_EVENT = "deleted_event"
    LAST_EVIDENCE = "last_evidence"
