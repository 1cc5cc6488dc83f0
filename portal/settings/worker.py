"""Celery worker, beat, the observer and commands: no pages, no middleware."""

from portal.settings.base import *  # noqa: F403
