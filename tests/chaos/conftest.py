"""Chaos tests use the scene of the deployment loop's own tests."""

from tests.models_app.reconcile.conftest import fleet_cluster, grant, make_scene

__all__ = ["fleet_cluster", "grant", "make_scene"]
