"""The database goes away under a pass: nothing is lost, nothing is made twice, and the row is worked on again by itself."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from fleet.cluster import placed
from fleet.models import ProjectSpace
from fleet.reconcile.spaces import RECONCILER
from fleet.services.parts.spaces import space_ensure
from portal.kernel.clock import frozen, now
from portal.tenancy.models import unscoped
from portal.work.loop import run_pass, settle
from tests.cast import Cast, actor_of, make_cluster
from tests.chaos.interrupted import Interrupted
from tests.fleet.cluster.fake import FakeCluster

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]


def cut_connection() -> None:
    """As a restart of the server does to every session: this one's backend is ended by another."""
    pid = connection.connection.info.backend_pid
    parameters = connection.get_connection_params()
    dsn = {name: parameters[name] for name in ("dbname", "user", "host", "port", "password") if parameters.get(name)}
    with psycopg.connect(**dsn) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.mark.parametrize(("method", "number", "after"), [("get", 1, False), ("apply", 3, True), ("apply", 7, True)])
def test_a_connection_cut_in_the_middle_of_a_pass(cast: Cast, method: str, number: int, after: bool) -> None:
    with transaction.atomic():
        space = space_ensure(actor=actor_of(cast.member), project=cast.project, cluster=make_cluster(credential="db"))
    fake = FakeCluster()
    slow = Interrupted(fake, method, number, cut_connection, after=after)
    with placed("db", slow), pytest.raises(DatabaseError):  # type: ignore[arg-type]
        run_pass(RECONCILER)
    assert slow.happened
    with unscoped("test"):
        row = ProjectSpace.objects.get(pk=space.pk)
    assert (row.observed_generation, row.crashes, row.lease_token) == (0, 0, None)
    assert row.last_error
    with placed("db", fake), frozen(now() + timedelta(seconds=2)):
        settle(RECONCILER)
    with unscoped("test"):
        row = ProjectSpace.objects.get(pk=space.pk)
    assert (row.observed_generation, row.last_error) == (1, "")
    assert len(fake.objects()) == 7
    assert len([call for call in fake.calls if call[0] == "apply"]) == 7, "something was made twice"
