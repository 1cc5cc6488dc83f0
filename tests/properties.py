"""How property tests run: on a busy machine an example may take long, and that is no failure of the rule it tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("slipway", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def calm() -> None:
    """Use that profile for the tests of this run."""
    settings.load_profile("slipway")
