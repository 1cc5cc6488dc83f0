"""Fixtures every test may use: the standing cast and its factories, the real cluster, and the whole of Slipway running."""

import portal.celery  # noqa: F401  (as in every process: hints go to this run's own broker)
from tests.properties import calm

pytest_plugins = ["tests.cast", "tests.cluster", "tests.running"]

calm()
