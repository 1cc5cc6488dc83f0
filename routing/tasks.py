"""Celery entry points of routing."""

from __future__ import annotations

from pathlib import Path

from celery import shared_task
from django.conf import settings

from routing.services.key_use import key_use_ingest


@shared_task
def access_log_ingest() -> None:
    """When each key was last used, from the door's access log; nothing where this process has no such file."""
    if settings.ACCESS_LOG_PATH:
        key_use_ingest(path=Path(settings.ACCESS_LOG_PATH))
