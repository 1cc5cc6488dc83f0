import pytest
from django.db import transaction

from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Forbidden, NotFound
from portal.tenancy.selectors.audit import audit_list


@pytest.fixture
def trail(cast):
    with transaction.atomic():
        for project in (cast.project, cast.other_project):
            event_record(
                actor=Actor.service("test"),
                action="thing.do",
                object_kind="thing",
                object_id=project.slug,
                project_id=project.public_id,
                organization_id=project.organization.public_id,
            )
        event_record(actor=Actor.service("test"), action="cluster.create", object_kind="cluster", object_id="clu_1")


def test_an_auditor_reads_all(trail, act):
    assert [event.object_id for event in audit_list(actor=act("auditor"))] == ["clu_1", "speech", "vision"]
    assert [event.object_id for event in audit_list(actor=act("auditor"), object_kind="thing")] == ["speech", "vision"]
    assert [event.object_id for event in audit_list(actor=act("auditor"), object_id="vision")] == ["vision"]


def test_an_administrator_reads_its_own_organization(trail, cast, act):
    assert [event.object_id for event in audit_list(actor=act("org_admin"))] == ["vision"]
    assert [event.object_id for event in audit_list(actor=act("org_admin"), project=cast.project)] == ["vision"]
    with pytest.raises(NotFound):
        audit_list(actor=act("org_admin"), project=cast.other_project)


@pytest.mark.parametrize("name", ["viewer", "member", "lead", "fleet_operator", "platform_admin", "outsider"])
def test_others_audit_nothing(trail, act, name):
    with pytest.raises(Forbidden):
        audit_list(actor=act(name))


def test_a_lead_sees_the_project_and_may_not_audit_it(trail, cast, act):
    with pytest.raises(Forbidden):
        audit_list(actor=act("lead"), project=cast.project)
    with pytest.raises(NotFound):
        audit_list(actor=act("outsider"), project=cast.project)
