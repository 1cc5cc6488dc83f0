"""Fixtures every test may use: the standing cast and its factories, and the real cluster."""

pytest_plugins = ["tests.cast", "tests.cluster"]
