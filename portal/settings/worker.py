"""Celery worker, beat, the observer and commands: no pages, no middleware.

The schedule is plain intervals, so no clock change moves it (C31), and each entry is right when it runs twice or late.
"""

from portal.settings.base import *  # noqa: F403
from portal.settings.base import METER_SECONDS, SWEEP_SECONDS

CELERY_BEAT_SCHEDULE = {
    "sweep spaces": {"task": "fleet.tasks.spaces_sweep", "schedule": SWEEP_SECONDS},
    "sweep deployments": {"task": "models_app.tasks.deployments_sweep", "schedule": SWEEP_SECONDS},
    "meter clusters": {"task": "fleet.tasks.meter_sweep", "schedule": METER_SECONDS},
    "read access log": {"task": "routing.tasks.access_log_ingest", "schedule": SWEEP_SECONDS},
    "expire requests": {"task": "portal.approvals.tasks.requests_expire", "schedule": 60},
    "expire grants": {"task": "fleet.tasks.grants_expire", "schedule": 60},
}
CELERY_BEAT_SCHEDULE = {
    name: {**entry, "options": {"expires": max(int(entry["schedule"]) * 2, 30)}}
    for name, entry in CELERY_BEAT_SCHEDULE.items()
}
