"""Every Celery message carries when it was sent, so that the age of the oldest one can be read from the queue."""

from __future__ import annotations

from typing import Any

from celery.signals import before_task_publish

from portal.kernel.clock import now

QUEUE = "celery"
SENT_AT = "slipway_sent_at"


def stamp_messages() -> None:
    """Once per process, from ``AppConfig.ready``."""
    before_task_publish.connect(_stamp, weak=False, dispatch_uid="slipway-sent-at")  # type: ignore[no-untyped-call]


def _stamp(headers: dict[str, Any] | None = None, **_rest: Any) -> None:
    if headers is not None:
        headers[SENT_AT] = now().isoformat()
