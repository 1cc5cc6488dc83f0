from datetime import timedelta

import pytest
from django.db import transaction

from fleet.models import Grant, QuotaHold
from fleet.services.parts.holds import hold_end, hold_lower, hold_raise
from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent
from portal.kernel import clock
from portal.kernel.errors import NotFound, QuotaExceeded
from portal.tenancy.models import unscoped
from tests.cast import make_grant, make_profile

LOOP = Actor.service("deployments")


@pytest.fixture
def grant(cast):
    return make_grant(cast.project, make_profile(title="H100 80 GB"), devices=8)


def raise_(grant, consumer, devices):
    with transaction.atomic():
        return hold_raise(actor=LOOP, grant_id=grant.pk, consumer_kind="deployment", consumer_id=consumer, devices=devices)


def lower(consumer, devices):
    with transaction.atomic():
        return hold_lower(actor=LOOP, consumer_kind="deployment", consumer_id=consumer, devices=devices)


def end(consumer):
    with transaction.atomic():
        return hold_end(actor=LOOP, consumer_kind="deployment", consumer_id=consumer)


def held(grant):
    return sum(QuotaHold.objects.for_project(grant.project).filter(ended_at=None).values_list("devices", flat=True))


def trail():
    return [
        (event.action, event.object_id, event.before["devices"], event.after["devices"])
        for event in AuditEvent.objects.order_by("pk")
    ]


def test_every_change_of_a_hold_has_its_audit_row(grant, cast):
    raise_(grant, "dep_a", 2)
    raise_(grant, "dep_a", 5)
    lower("dep_a", 3)
    assert end("dep_a") is True
    assert trail() == [
        ("hold.raise", "dep_a", 0, 2),
        ("hold.raise", "dep_a", 2, 5),
        ("hold.lower", "dep_a", 5, 3),
        ("hold.end", "dep_a", 3, 0),
    ]
    event = AuditEvent.objects.first()
    assert (event.project_id, event.organization_id) == (cast.project.public_id, cast.organization.public_id)
    assert event.after["grant"] == grant.public_id
    assert held(grant) == 0


def test_up_to_the_grant_and_not_one_more(grant):
    raise_(grant, "dep_a", 5)
    raise_(grant, "dep_b", 3)
    with pytest.raises(QuotaExceeded, match=r"H100 80 GB: .*needs 1 devices; the grant has 8, others hold 8, 0 are free"):
        raise_(grant, "dep_c", 1)
    with pytest.raises(QuotaExceeded, match="needs 6 devices; the grant has 8, others hold 3, 5 are free"):
        raise_(grant, "dep_a", 6)
    assert held(grant) == 8
    assert len(trail()) == 2


def test_ended_holds_are_free_again_and_a_new_one_may_be_raised(grant):
    raise_(grant, "dep_a", 8)
    end("dep_a")
    raise_(grant, "dep_b", 8)
    end("dep_b")
    raise_(grant, "dep_a", 1)
    assert QuotaHold.objects.for_project(grant.project).filter(consumer_id="dep_a").count() == 2


def test_repeats_change_nothing(grant):
    raise_(grant, "dep_a", 2)
    for _ in range(2):
        raise_(grant, "dep_a", 2)
        raise_(grant, "dep_a", 1)
        lower("dep_a", 2)
        lower("dep_a", 7)
    assert held(grant) == 2
    assert len(trail()) == 1
    end("dep_a")
    assert end("dep_a") is False
    assert lower("dep_a", 0) is None
    assert len(trail()) == 2


def test_lowering_a_grant_below_what_is_held_kills_nothing_and_blocks_what_is_new(grant):
    raise_(grant, "dep_a", 6)
    Grant.objects.for_project(grant.project).update(devices=4)
    assert raise_(grant, "dep_a", 6).devices == 6
    with pytest.raises(QuotaExceeded, match="others hold 6, 0 are free"):
        raise_(grant, "dep_b", 1)
    with pytest.raises(QuotaExceeded):
        raise_(grant, "dep_a", 7)
    lower("dep_a", 3)
    raise_(grant, "dep_b", 1)
    assert held(grant) == 4


@pytest.mark.parametrize("state", ["pending", "expired", "revoked", "closed"])
def test_an_unusable_grant_takes_nothing_new_and_lets_go(grant, state):
    raise_(grant, "dep_a", 2)
    with unscoped("a test sets the scene"):
        Grant.objects.filter(pk=grant.pk).update(state=state)
    with pytest.raises(QuotaExceeded):
        raise_(grant, "dep_b", 1)
    with pytest.raises(QuotaExceeded):
        raise_(grant, "dep_a", 3)
    assert raise_(grant, "dep_a", 2).devices == 2
    lower("dep_a", 1)
    assert end("dep_a") is True


def test_before_its_start_and_after_its_end_nothing_is_held_though_no_sweep_ran(cast):
    with clock.frozen(clock.now()) as frozen:
        grant = make_grant(
            cast.project,
            make_profile(),
            starts_at=frozen.at + timedelta(hours=1),
            ends_at=frozen.at + timedelta(hours=2),
        )
        with pytest.raises(QuotaExceeded, match="starts at"):
            raise_(grant, "dep_a", 1)
        frozen.advance(timedelta(hours=1))
        raise_(grant, "dep_a", 1)
        frozen.advance(timedelta(hours=1))
        with pytest.raises(QuotaExceeded, match="ended at"):
            raise_(grant, "dep_b", 1)


def test_one_consumer_holds_on_one_grant(cast, grant):
    other = make_grant(cast.project, make_profile(), devices=8)
    raise_(grant, "dep_a", 1)
    with pytest.raises(QuotaExceeded, match="another grant"):
        raise_(other, "dep_a", 1)


def test_a_zero_hold_counts_nothing(grant):
    raise_(grant, "dep_a", 0)
    raise_(grant, "dep_b", 8)
    assert held(grant) == 8


def test_impossible_arguments(grant):
    with pytest.raises(ValueError, match="0 or more"):
        raise_(grant, "dep_a", -1)
    with pytest.raises(NotFound), transaction.atomic():
        hold_raise(actor=LOOP, grant_id=10**9, consumer_kind="deployment", consumer_id="dep_a", devices=1)


@pytest.mark.django_db(transaction=True)
def test_a_hold_outside_a_transaction_is_a_programming_error():
    for change in (
        lambda: hold_raise(actor=LOOP, grant_id=1, consumer_kind="k", consumer_id="c", devices=1),
        lambda: hold_lower(actor=LOOP, consumer_kind="k", consumer_id="c", devices=1),
        lambda: hold_end(actor=LOOP, consumer_kind="k", consumer_id="c"),
    ):
        with pytest.raises(AssertionError, match="transaction"):
            change()
