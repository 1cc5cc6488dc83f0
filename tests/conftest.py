"""Fixtures every test may use: the standing cast and its factories, and the real cluster."""

import portal.celery  # noqa: F401  (as in every process: hints go to this run's own broker)

pytest_plugins = ["tests.cast", "tests.cluster"]
