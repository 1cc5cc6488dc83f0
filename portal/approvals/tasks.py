"""Celery entry points of the request machine."""

from __future__ import annotations

from celery import shared_task

from portal.approvals.services import requests
from portal.kernel.clock import now


@shared_task(name="portal.approvals.tasks.requests_expire")
def requests_expire() -> None:
    """End what has reached its end date; started by beat."""
    requests.requests_expire(now())
