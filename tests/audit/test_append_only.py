"""The database refuses to change or remove audit rows, whoever asks (contract §9)."""

import pytest
from django.db import IntegrityError, InternalError, ProgrammingError, connection, transaction

from portal.audit.domain.actors import Actor, ActorKind, Channel
from portal.audit.models import AuditEvent
from portal.audit.services import event_record

REFUSED = (ProgrammingError, InternalError)


@pytest.fixture
def event(db):
    with transaction.atomic():
        return event_record(
            actor=Actor(
                kind=ActorKind.USER,
                id="usr_1",
                channel=Channel.API,
                user_pk=1,
                token_id="tok_1",
                request_id="r-1",
            ),
            action="thing.do",
            object_kind="thing",
            object_id="1",
            before={"a": 1},
            after={"a": 2},
            reason="because",
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditevent SET reason = 'other'",
        "DELETE FROM audit_auditevent",
        "TRUNCATE audit_auditevent",
        "TRUNCATE audit_auditevent CASCADE",
        "UPDATE audit_auditevent SET id = id",
        "INSERT INTO audit_auditevent SELECT * FROM audit_auditevent ON CONFLICT (id) DO UPDATE SET reason = 'other'",
        "MERGE INTO audit_auditevent e USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_every_way_to_change_a_row_is_refused(event, statement):
    with pytest.raises(REFUSED, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    kept = AuditEvent.objects.get()
    assert (kept.reason, kept.before, kept.after) == ("because", {"a": 1}, {"a": 2})


def test_the_orm_cannot_either(event):
    for change in (
        lambda: AuditEvent.objects.update(reason="other"),
        lambda: AuditEvent.objects.all().delete(),
        event.delete,
        event.save,
    ):
        with pytest.raises(REFUSED, match="append-only"), transaction.atomic():
            change()
    assert AuditEvent.objects.count() == 1


def test_a_row_says_who_through_what_and_for_which_request(event):
    kept = AuditEvent.objects.get()
    assert (kept.actor_kind, kept.actor_id, kept.channel) == ("user", "usr_1", "api")
    assert (kept.token_id, kept.request_id) == ("tok_1", "r-1")


@pytest.mark.django_db(transaction=True)
def test_outside_the_transaction_of_its_change_it_is_a_programming_error():
    with pytest.raises(AssertionError, match="transaction"):
        event_record(actor=Actor.service("loop"), action="thing.do", object_kind="thing", object_id="1")


@pytest.mark.django_db(transaction=True)
def test_a_change_that_rolls_back_leaves_no_row():
    with transaction.atomic():
        event_record(actor=Actor.service("loop"), action="thing.do", object_kind="thing", object_id="1")
        transaction.set_rollback(True)
    assert not AuditEvent.objects.exists()


def test_an_unknown_channel_is_refused_by_the_database(db):
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEvent.objects.create(
            actor_kind="user", actor_id="1", channel="telepathy", action="a", object_kind="k", object_id="1"
        )
