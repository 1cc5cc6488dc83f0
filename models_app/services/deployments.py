"""Changes that people make to a standing deployment. Making one is a request (``models_app.request_kinds``)."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from fleet.services.parts.holds import hold_raise
from models_app.domain.payload import REPLICAS_MAX
from models_app.models import Deployment
from models_app.selectors.deployments import deployment_get
from models_app.selectors.specs import CONSUMER_KIND
from models_app.services.parts.deployments import deployment_locked, deployment_stop, record, snapshot
from portal.audit.domain.actors import Actor
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import require
from portal.work import hints
from portal.work.models import Desired
from portal.work.services.parts.generations import generation_raise


def deployment_scale(
    *, actor: Actor, public_id: str, replicas_min: int, replicas_max: int, version: int | None = None
) -> Deployment:
    """Set the replica range; growth of the ceiling is held first, or QuotaExceeded and nothing changes (Q1).

    ``replicas_min`` 0 scales to zero (the hold stays). Stale when ``version`` is not the row's; Conflict when it is being
    deleted. The same range again changes nothing. Locks: grant, then the row.
    """
    _check_range(replicas_min, replicas_max)
    deployment = deployment_get(actor=actor, public_id=public_id)
    require(actor=actor, permission=Permission.DEPLOYMENT_CHANGE, project=deployment.project)
    with transaction.atomic(durable=True):
        if deployment.desired == Desired.PRESENT:
            hold_raise(
                actor=actor,
                grant_id=deployment.grant_id,
                consumer_kind=CONSUMER_KIND,
                consumer_id=public_id,
                devices=replicas_max * deployment.devices_per_replica,
            )
        row = deployment_locked(deployment=deployment, version=version)
        if (row.replicas_min, row.replicas_max) == (replicas_min, replicas_max):
            return row
        before = snapshot(row)
        generation_raise(
            row,
            replicas_min=replicas_min,
            replicas_max=replicas_max,
            version=F("version") + 1,
            request_id=actor.request_id,
        )
        record(actor, "deployment.scale", row, before, snapshot(row))
        hints.nudge(CONSUMER_KIND, public_id)
        return row


def deployment_delete(*, actor: Actor, public_id: str, version: int | None = None, reason: str = "") -> Deployment:
    """Stop wanting it. Repeating it is harmless; Stale when ``version`` is given and is not the row's (first time only)."""
    deployment = deployment_get(actor=actor, public_id=public_id)
    require(actor=actor, permission=Permission.DEPLOYMENT_DELETE, project=deployment.project)
    with transaction.atomic(durable=True):
        if deployment.desired == Desired.PRESENT and version is not None:
            deployment_locked(deployment=deployment, version=version)
        return deployment_stop(actor=actor, public_id=public_id, reason=reason.strip()) or deployment


def _check_range(replicas_min: int, replicas_max: int) -> None:
    fields: dict[str, list[str]] = {}
    if not 0 <= replicas_min <= REPLICAS_MAX:
        fields["replicas_min"] = [f"A whole number from 0 to {REPLICAS_MAX}."]
    if not 1 <= replicas_max <= REPLICAS_MAX:
        fields["replicas_max"] = [f"A whole number from 1 to {REPLICAS_MAX}."]
    if not fields and replicas_min > replicas_max:
        fields["replicas_min"] = [f"The minimum {replicas_min} is above the maximum {replicas_max}."]
    if fields:
        raise InvalidInput("The replica range is not possible.", fields=fields)
