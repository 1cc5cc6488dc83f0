"""Celery entry points of the fleet: ids in, call a service or a loop."""

from __future__ import annotations

from celery import shared_task

from fleet.observer.meter import meter_pass, meter_targets
from fleet.reconcile.spaces import RECONCILER
from fleet.services import grants
from portal.kernel.clock import now
from portal.work.loop import run_pass, sweep


@shared_task
def meter_sweep() -> None:
    """One task a cluster, so that one that does not answer delays no other."""
    for public_id in meter_targets():
        meter_cluster.delay(public_id)


@shared_task
def meter_cluster(public_id: str) -> None:
    meter_pass(public_id)


@shared_task
def space_reconcile(public_id: str) -> None:
    run_pass(RECONCILER, public_id, only_due=True)


@shared_task
def spaces_sweep() -> None:
    sweep(RECONCILER)


@shared_task
def grants_expire() -> None:
    grants.grants_expire(now())
