"""Pytest plugin (``-p tests.stack``): real PostgreSQL and Valkey for any test run, before Django reads its settings."""

from __future__ import annotations

import atexit
import os
import shutil

from deploy.local.services import start_postgres, start_valkey
from deploy.local.state import state_dir

_state = state_dir() / "test"
_state.mkdir(exist_ok=True)
_run = str(os.getpid())

os.environ["SLIPWAY_SECRET_KEY"] = "tests-only"
os.environ["SLIPWAY_DATABASE_URL"] = (
    start_postgres(_state / "postgres", durable=False) + f"&application_name=slipway-test-{_run}"
)
atexit.register(shutil.rmtree, _state / f"valkey-{_run}", ignore_errors=True)  # last registered ends first
valkey = start_valkey(_state / f"valkey-{_run}")
os.environ["SLIPWAY_VALKEY_URL"] = f"redis://127.0.0.1:{valkey.port}/0"
os.environ["SLIPWAY_CLUSTER_CREDENTIALS_DIR"] = str(_state / "clusters")
(_state / "static").mkdir(exist_ok=True)
os.environ["SLIPWAY_STATIC_ROOT"] = str(_state / "static")
os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings.test"
