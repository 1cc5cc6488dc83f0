"""The Celery application: runs loops and carries hints, nothing else. Every process imports it: a hint needs its broker."""

from __future__ import annotations

from celery import Celery

from portal.settings.environment import use_settings

use_settings("portal.settings.worker")

app = Celery("slipway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # for every thread: the current application alone is known to the thread that made it
