from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from fleet.observer.process import ObserverProcess


class Command(BaseCommand):
    requires_system_checks = []  # they load every page and form, which this process never needs
    help = "Watch every enabled cluster and store what it says: nodes, pods, GPU intervals. Runs until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        ObserverProcess(stop=stop).run()
