"""What the loop records of a deployment that its cluster refuses for good; no cluster is asked."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.db import transaction

from models_app.models import Deployment
from models_app.reconcile.deployments import DeploymentReconciler
from models_app.reconcile.outcomes import never
from models_app.reconcile.view import DeploymentPass
from portal.approvals.models import Request
from portal.audit.models import AuditEvent
from portal.tenancy.models import unscoped
from portal.work.domain.outcomes import Outcome, Settled
from portal.work.loop import run_pass
from portal.work.services.parts.generations import generation_raise
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db


class Refused(DeploymentReconciler):
    """Every pass ends in a refusal; ``meanwhile`` is another generation that somebody writes during it."""

    def __init__(self, *, meanwhile: bool) -> None:
        self._meanwhile = meanwhile

    def reconcile(self, view: DeploymentPass, now: datetime) -> Outcome:
        if self._meanwhile:
            with transaction.atomic():
                generation_raise(view.deployment.__class__._base_manager.get(pk=view.deployment.pk))
        return never(view, now, reason="Invalid", message="spec.x: not supported")


class Idle(DeploymentReconciler):
    """Every pass finds nothing to run."""

    def reconcile(self, view: DeploymentPass, now: datetime) -> Outcome:
        return Settled(updates={"phase": "idle", "phase_reason": "Suspended"})


def refused(cast: Cast, *, meanwhile: bool) -> tuple[Deployment, Request]:
    return passed(cast, Refused(meanwhile=meanwhile))


def passed(cast: Cast, reconciler: DeploymentReconciler, *, asked: int = 1) -> tuple[Deployment, Request]:
    grant = make_grant(cast.project, make_profile("h100"), devices=8)
    with unscoped("a test's starting point"):
        request = Request.objects.create(
            kind="deployment",
            project=cast.project,
            requester=cast.member,
            title="tiny",
            state="approved",
            payload={"replicas_min": asked},
        )
        deployment = make_deployment(grant, make_cluster("local"), author=cast.member, approval_id=request.public_id)
        run_pass(reconciler, deployment.public_id)
        deployment.refresh_from_db()
        request.refresh_from_db()
    return deployment, request


def test_what_can_never_become_true_is_stopped_with_an_audit_row_and_its_request_fails(cast: Cast) -> None:
    deployment, request = refused(cast, meanwhile=False)
    assert (deployment.desired, deployment.phase, request.state) == ("absent", "failed", "failed")
    assert request.outcome == "spec.x: not supported"
    assert deployment.generation == deployment.observed_generation + 1
    event = AuditEvent.objects.get(object_id=deployment.public_id, action="deployment.delete")
    assert (event.actor_id, event.reason) == ("deployment-loop", "spec.x: not supported")


def test_a_change_made_while_the_old_spec_was_refused_is_tried_and_not_thrown_away(cast: Cast) -> None:
    deployment, request = refused(cast, meanwhile=True)
    assert (deployment.desired, request.state) == ("present", "approved")
    assert deployment.generation == deployment.observed_generation + 1


@pytest.mark.parametrize(("asked", "state"), [(0, "fulfilled"), (1, "approved")])
def test_idle_fulfils_only_what_was_asked_to_be_idle(cast: Cast, asked: int, state: str) -> None:
    deployment, request = passed(cast, Idle(), asked=asked)
    assert (deployment.phase, request.state) == ("idle", state)
