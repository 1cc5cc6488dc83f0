"""Many people at once, on real Postgres with real threads (contract Q1, Q5)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections

from fleet.models import QuotaHold
from models_app.models import Deployment
from models_app.reconcile.deployments import RECONCILER
from models_app.services.deployments import deployment_delete, deployment_scale
from portal.approvals.models import Request
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from portal.kernel.errors import SlipwayError
from portal.tenancy.models import unscoped
from portal.work.loop import run_pass
from tests.cast import actor_of, make_cast, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(acts: list[Callable[[], Any]]) -> Counter[str]:
    """Run every act in a thread of its own, all started together; how many ended how (``ok`` or the error's code)."""
    barrier = threading.Barrier(len(acts))
    ends: Counter[str] = Counter()
    lock = threading.Lock()

    def run(act: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(timeout=60)
            act()
            end = "ok"
        except SlipwayError as error:
            end = error.code
        finally:
            connections.close_all()
        with lock:
            ends[end] += 1

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    return ends


def ask(cast: Any, name: str, profile: str) -> Request:
    payload = {"name": name, "profile": profile, "source": "hf://acme/tiny", "source_file": "tiny.gguf"}
    return request_submit(actor=actor_of(cast.member), kind="deployment", project=cast.project, payload=payload)


def test_q5_race_50_approvals_of_one_device_against_8_admit_exactly_8() -> None:
    cast = make_cast()
    make_cluster()
    profile = make_profile()
    make_grant(cast.project, profile, devices=8)
    requests = [ask(cast, f"model-{number}", profile.name) for number in range(50)]
    leads = [cast.lead, cast.other_lead]
    ends = at_once(
        [
            lambda request=request, lead=leads[number % 2]: request_decide(
                actor=actor_of(lead), public_id=request.public_id, verdict="approve"
            )
            for number, request in enumerate(requests)
        ]
    )
    assert ends == {"ok": 8, "quota_exceeded": 42}
    with unscoped("test"):
        assert Deployment.objects.count() == 8
        assert sum(QuotaHold.objects.filter(ended_at=None).values_list("devices", flat=True)) == 8
        assert Counter(Request.objects.values_list("state", flat=True)) == {"approved": 8, "submitted": 42}


def test_q5_race_two_approvers_and_double_clicks_declare_once() -> None:
    cast = make_cast()
    make_cluster()
    profile = make_profile()
    make_grant(cast.project, profile, devices=8)
    request = ask(cast, "chat", profile.name)
    ends = at_once(
        [
            lambda lead=lead: request_decide(actor=actor_of(lead), public_id=request.public_id, verdict="approve")
            for lead in [cast.lead, cast.other_lead] * 6
        ]
    )
    assert ends == {"ok": 12}
    with unscoped("test"):
        assert Deployment.objects.count() == 1
        assert [hold.devices for hold in QuotaHold.objects.all()] == [1]


def test_race_of_one_name_declares_it_once() -> None:
    cast = make_cast()
    make_cluster()
    first, second = make_profile(), make_profile()
    for profile in (first, second):
        make_grant(cast.project, profile, devices=8)
    requests = [ask(cast, "chat", profile.name) for profile in [first, second] * 5]
    ends = at_once(
        [
            lambda request=request: request_decide(actor=actor_of(cast.lead), public_id=request.public_id, verdict="approve")
            for request in requests
        ]
    )
    assert ends == {"ok": 1, "name_taken": 9}
    with unscoped("test"):
        assert Deployment.objects.count() == 1
        assert QuotaHold.objects.filter(ended_at=None).count() == 1


def test_race_of_scaling_deleting_and_passes_never_deadlocks() -> None:
    cast = make_cast()
    cluster = make_cluster()
    grant = make_grant(cast.project, make_profile(), devices=64)
    rows = [make_deployment(grant, cluster, author=cast.member) for _ in range(4)]
    acts: list[Callable[[], Any]] = []
    for row in rows:
        for replicas in (2, 5, 3, 8):
            acts.append(
                lambda row=row, replicas=replicas: deployment_scale(
                    actor=actor_of(cast.member), public_id=row.public_id, replicas_min=1, replicas_max=replicas
                )
            )
        acts += [lambda row=row: run_pass(RECONCILER, row.public_id)] * 3
    acts.append(lambda: deployment_delete(actor=actor_of(cast.lead), public_id=rows[0].public_id))
    ends = at_once(acts)
    assert set(ends) <= {"ok", "deleting"}
    assert ends.total() == len(acts)
    with unscoped("test"):
        for row in Deployment.objects.all():
            hold = QuotaHold.objects.get(consumer_id=row.public_id, ended_at=None)
            assert hold.devices >= row.replicas_max * row.devices_per_replica
            assert row.lease_token is None
