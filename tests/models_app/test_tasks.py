from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from models_app import tasks
from models_app.models import Deployment
from portal.celery import app
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.models import Heartbeat
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile


def test_every_hint_names_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    kinds = {kind.kind: kind.task_name for kind in hints.registered()}
    assert kinds["deployment"] == tasks.deployment_reconcile.name
    assert set(kinds.values()) <= set(app.tasks)


@pytest.mark.django_db
@pytest.mark.parametrize(("observed", "phase"), [({}, "admitted"), ({"workload": {"present": True}}, "unknown")])
def test_a_pass_without_a_cluster_knows_only_what_was_seen(cast: Cast, observed: dict[str, Any], phase: str) -> None:
    grant = make_grant(cast.project, make_profile())
    row = make_deployment(grant, make_cluster(), author=cast.member, observed=observed, attempts=50)
    tasks.deployment_reconcile(row.public_id)
    with unscoped("test"):
        row = Deployment.objects.get(pk=row.pk)
    assert (row.phase, row.phase_reason) == (phase, "ClusterUnreachable")
    assert row.observed == observed
    assert row.lease_token is None
    assert now() < row.next_attempt_at < now() + timedelta(seconds=31)


@pytest.mark.django_db
def test_a_sweep_says_how_many_are_due(cast: Cast) -> None:
    make_deployment(make_grant(cast.project, make_profile()), make_cluster(), author=cast.member)
    tasks.deployments_sweep()
    assert Heartbeat.objects.get(name="sweep:deployment").detail["due"] == 1
