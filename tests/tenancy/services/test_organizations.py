import pytest

from portal.audit.domain.actors import Actor, Channel
from portal.audit.models import AuditEvent
from portal.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from portal.tenancy import closing
from portal.tenancy.models import Project, ProjectState
from portal.tenancy.services.organizations import organization_create, project_close, project_create, project_rename

COMMAND = Actor.service("seed", channel=Channel.COMMAND)


def test_a_platform_admin_makes_an_organization(cast, act):
    organization = organization_create(actor=act("platform_admin"), name="  Initech   Labs ")
    assert (organization.name, organization.slug) == ("Initech Labs", "initech-labs")
    event = AuditEvent.objects.get(action="organization.create")
    assert (event.actor_id, event.organization_id) == (cast.platform_admin.public_id, organization.public_id)


@pytest.mark.parametrize("name", ["org_admin", "lead", "auditor", "fleet_operator", "outsider"])
def test_nobody_else_makes_an_organization(cast, act, name):
    with pytest.raises(Forbidden):
        organization_create(actor=act(name), name="Initech")


def test_a_taken_slug_is_a_conflict_that_leaves_nothing(cast, act):
    with pytest.raises(Conflict) as caught:
        organization_create(actor=act("platform_admin"), name="ACME")
    assert "slug" in caught.value.fields
    assert not AuditEvent.objects.exists()


def test_an_administrator_makes_a_project_with_its_namespace(cast, act):
    project = project_create(
        actor=act("org_admin"), organization=cast.organization, name="Wave Field", time_zone="Europe/Berlin"
    )
    assert (project.slug, project.namespace, project.time_zone) == ("wave-field", "sw-acme-wave-field", "Europe/Berlin")
    event = AuditEvent.objects.get(action="project.create")
    assert event.project_id == project.public_id
    assert event.after["namespace"] == "sw-acme-wave-field"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "日本"}, "slug"),
        ({"slug": "Not A Slug"}, "slug"),
        ({"slug": "-x"}, "slug"),
        ({"slug": "x" * 41}, "slug"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": ""}, "time_zone"),
        ({"time_zone": "../etc/passwd"}, "time_zone"),
    ],
)
def test_bad_input_names_its_field(cast, act, changes, field):
    with pytest.raises(InvalidInput) as caught:
        project_create(actor=act("org_admin"), organization=cast.organization, **{"name": "Good", **changes})
    assert list(caught.value.fields) == [field]


def test_a_slug_stays_taken_when_its_project_is_closed(cast, act):
    project_close(actor=act("org_admin"), public_id=cast.project.public_id)
    with pytest.raises(Conflict):
        project_create(actor=act("org_admin"), organization=cast.organization, name="Vision")


def test_joined_names_that_meet_get_different_namespaces(cast, act):
    one = organization_create(actor=act("platform_admin"), name="a b")
    other = organization_create(actor=act("platform_admin"), name="a")
    first = project_create(actor=COMMAND, organization=one, name="c")
    second = project_create(actor=COMMAND, organization=other, name="b c")
    assert first.namespace == "sw-a-b-c"
    assert second.namespace != first.namespace
    assert second.namespace.startswith("sw-a-b-c-")


def test_a_rename_changes_the_name_and_nothing_that_hangs_on_it(cast, act):
    before = Project.objects.get(pk=cast.project.pk)
    project_rename(actor=act("lead"), public_id=cast.project.public_id, name="Sight", version=1)
    after = Project.objects.get(pk=cast.project.pk)
    assert (after.name, after.version) == ("Sight", 2)
    assert (after.slug, after.namespace, after.public_id) == (before.slug, before.namespace, before.public_id)
    event = AuditEvent.objects.get(action="project.rename")
    assert (event.before["name"], event.after["name"]) == ("Vision", "Sight")


def test_a_stale_rename_is_refused(cast, act):
    project_rename(actor=act("lead"), public_id=cast.project.public_id, name="Sight", version=1)
    with pytest.raises(Stale):
        project_rename(actor=act("lead"), public_id=cast.project.public_id, name="Hearing", version=1)


def test_the_same_name_again_writes_nothing(cast, act):
    project_rename(actor=act("lead"), public_id=cast.project.public_id, name="Vision")
    assert not AuditEvent.objects.exists()


def test_a_member_renames_nothing_and_a_stranger_sees_nothing(cast, act):
    with pytest.raises(Forbidden):
        project_rename(actor=act("member"), public_id=cast.project.public_id, name="Sight")
    with pytest.raises(NotFound):
        project_rename(actor=act("outsider"), public_id=cast.project.public_id, name="Sight")
    with pytest.raises(NotFound):
        project_rename(actor=act("lead"), public_id="prj_nope", name="Sight")


def test_closing_runs_the_endings_of_the_floors_above_once(cast, act, monkeypatch):
    ended = []
    monkeypatch.setitem(closing._endings, "test", lambda *, actor, project: ended.append((actor.id, project.state)))
    project_close(actor=act("org_admin"), public_id=cast.project.public_id, reason="Money is spent.")
    project_close(actor=act("org_admin"), public_id=cast.project.public_id)
    assert ended == [(cast.org_admin.public_id, ProjectState.CLOSED)]
    event = AuditEvent.objects.get(action="project.close")
    assert (event.before["state"], event.after["state"], event.reason) == ("active", "closed", "Money is spent.")


def test_a_lead_closes_nothing(cast, act):
    with pytest.raises(Forbidden):
        project_close(actor=act("lead"), public_id=cast.project.public_id)
