"""Every process that writes rows sends its hints to Slipway's broker, from any thread."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRINT_BROKER = (
    "import threading\n"
    "from celery import current_app\n"
    "thread = threading.Thread(target=lambda: print('broker', current_app.conf.broker_url))\n"
    "thread.start(); thread.join()\n"
)


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ("portal.settings.web", "import portal.asgi\n"),
        ("portal.settings.worker", "import portal.celery, django\ndjango.setup()\n"),
    ],
)
def test_a_hint_of_any_thread_goes_to_our_broker(settings: str, start: str) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}
    done = subprocess.run(
        [sys.executable, "-c", start + PRINT_BROKER], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"broker {os.environ['SLIPWAY_VALKEY_URL']}"


def test_so_does_a_command() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings.worker"}
    command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", PRINT_BROKER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"broker {os.environ['SLIPWAY_VALKEY_URL']}" in done.stdout, done.stderr
