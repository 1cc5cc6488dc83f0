"""How far the embedded control plane of ``make run`` has come; elsewhere there is nothing to tell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from portal.kernel.gpu_time import instant_of


@dataclass(frozen=True, slots=True)
class LocalProgress:
    """``percent`` is None while the length of ``step`` is not known. ``failed`` is why it stopped, "" while it goes on."""

    step: str
    percent: int | None
    failed: str
    at: datetime | None


def local_progress() -> LocalProgress | None:
    """None when the fleet is up, when nothing is being built here, and while the file is half-written."""
    if not settings.LOCAL_PROGRESS_FILE:
        return None
    try:
        told = json.loads(Path(settings.LOCAL_PROGRESS_FILE).read_text())
        if told["done"] and not told["failed"]:
            return None
        fraction = told["fraction"]
        return LocalProgress(
            step=str(told["step"]),
            percent=None if fraction is None else round(100 * float(fraction)),
            failed=str(told["failed"] or ""),
            at=instant_of(told.get("at")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
