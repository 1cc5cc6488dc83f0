"""Celery entry points of the deployment loop: ids in, one pass or one sweep."""

from __future__ import annotations

from celery import shared_task

from models_app.reconcile.deployments import RECONCILER
from portal.work.loop import run_pass, sweep


@shared_task(name="models_app.tasks.deployment_reconcile")
def deployment_reconcile(public_id: str) -> None:
    """One pass over the deployment."""
    run_pass(RECONCILER, public_id, only_due=True)


@shared_task(name="models_app.tasks.deployments_sweep")
def deployments_sweep() -> None:
    """Hint every deployment that is due."""
    sweep(RECONCILER)
