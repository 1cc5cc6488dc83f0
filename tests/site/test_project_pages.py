"""Project, usage, keys, tokens and fleet as people see them: what each says, and what it offers to whom."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from fleet.models import CoverageGap, GpuInterval, MeterAnomaly, ObservedPod
from models_app.models import Deployment
from portal.audit.models import AuditEvent
from portal.kernel.clock import now
from portal.tenancy.models import ApiToken, ProjectMembership, unscoped
from routing.models import ApiKey
from tests.table.crowd import add_to
from tests.table.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(db: None) -> World:
    return make_world()


def client_of(world: World, name: str) -> Client:
    client = Client()
    client.force_login(world.people[name])
    return client


def _secret(text: str) -> str:
    found = re.search(r'data-testid="secret-value">([^<]+)<', text)
    assert found, "no secret is shown"
    return found[1]


def test_the_overview_tells_grants_members_and_what_runs(world: World) -> None:
    text = client_of(world, "viewer").get(f"/projects/{world.ids['project']}/").content.decode()
    assert world.ids["grant"] in text
    assert "Save the member" not in text
    for name in ("viewer", "member", "lead"):
        assert world.people[name].email in text
    assert "Save the member" in client_of(world, "lead").get(f"/projects/{world.ids['project']}/").content.decode()


def test_a_lead_adds_changes_and_removes_a_member(world: World) -> None:
    lead, address = client_of(world, "lead"), f"/projects/{world.ids['project']}/"
    auditor = world.people["auditor"]
    for role in ("viewer", "member"):
        assert lead.post(f"{address}members/", {"email": auditor.email, "role": role}).status_code == 302
        assert ProjectMembership.objects.get(user=auditor).role == role
    assert lead.post(f"{address}members/{auditor.public_id}/remove/").status_code == 302
    assert not ProjectMembership.objects.filter(user=auditor).exists()
    assert AuditEvent.objects.filter(object_kind="membership", channel="browser").count() == 3


def test_an_unknown_address_is_said_at_its_field(world: World) -> None:
    answer = client_of(world, "lead").post(
        f"/projects/{world.ids['project']}/members/", {"email": "nobody@example.org", "role": "member"}
    )
    assert answer.status_code == 400
    assert 'data-testid="error-email"' in answer.content.decode()


def test_a_key_is_shown_once_and_revoked(world: World) -> None:
    member, address = client_of(world, "member"), f"/projects/{world.ids['project']}/keys/"
    made = member.post(address, {"name": "notebook", "expires_in_days": ""})
    assert made.status_code == 200
    assert made.headers["Cache-Control"] == "no-store"
    secret = _secret(made.content.decode())
    assert secret.startswith("slk_")
    assert secret not in member.get(address).content.decode()
    with unscoped("test"):
        key = ApiKey.objects.get(name="notebook")
    assert member.get(f"/keys/{key.public_id}/revoke/").status_code == 405
    assert member.post(f"/keys/{key.public_id}/revoke/").status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_a_viewer_sees_keys_and_is_offered_nothing(world: World) -> None:
    viewer, address = client_of(world, "viewer"), f"/projects/{world.ids['project']}/keys/"
    text = viewer.get(address).content.decode()
    assert world.ids["key"] in text
    assert 'data-testid="key-form"' not in text
    assert "/revoke/" not in text
    assert viewer.post(address, {"name": "x"}).status_code == 403


def test_a_token_is_shown_once_works_and_is_revoked(world: World) -> None:
    viewer = client_of(world, "viewer")
    made = viewer.post("/tokens/", {"name": "export", "scope": "read", "expires_in_days": "7"})
    secret = _secret(made.content.decode())
    api = Client(headers={"Authorization": f"Bearer {secret}"})
    assert api.get("/api/v1/me/").json()["scopes"] == ["read"]
    assert secret not in viewer.get("/tokens/").content.decode()
    token = ApiToken.objects.get(name="export")
    viewer.post(f"/tokens/{token.public_id}/revoke/")
    assert api.get("/api/v1/me/").status_code == 401


@pytest.mark.parametrize("wrong", [{"name": ""}, {"expires_in_days": "0"}, {"expires_in_days": "9999"}, {"scope": "root"}])
def test_a_wrong_token_form_makes_none(world: World, wrong: dict[str, str]) -> None:
    before = ApiToken.objects.count()
    answer = client_of(world, "viewer").post(
        "/tokens/", {"name": "export", "scope": "read", "expires_in_days": "7", **wrong}
    )
    assert answer.status_code == 400
    assert 'data-testid="form-errors"' in answer.content.decode()
    assert ApiToken.objects.count() == before


@pytest.fixture
def metered(world: World) -> World:
    """1.5 h of two devices and 30 min of one, ended this month; a gap and an anomaly."""
    deployment = Deployment.objects
    with unscoped("test"):
        row = deployment.select_related("cluster").get(public_id=world.ids["deployment"])
    GpuInterval.objects.all().delete()
    at = now()
    start = max(at - timedelta(hours=2), at.replace(day=1, hour=0, minute=0, second=0, microsecond=0))
    for uid, devices, length in (("uid-a", 2, timedelta(minutes=1)), ("uid-b", 1, timedelta(seconds=30))):
        GpuInterval.objects.create(
            cluster=row.cluster,
            pod_uid=uid,
            resource_name="nvidia.com/gpu",
            namespace="x",
            pod_name=f"pod-{uid}",
            project_id=world.ids["project"],
            consumer_kind="deployment",
            consumer_id=row.public_id,
            profile_name="h100",
            devices=devices,
            gpu_equiv_ppm=1_000_000,
            started_at=start,
            ended_at=start + length,
            start_basis="pod_scheduled",
            end_basis="container_finished",
        )
    CoverageGap.objects.create(cluster=row.cluster, started_at=start, ended_at=at, reason="observer was down")
    ObservedPod.objects.create(
        cluster=row.cluster,
        uid="uid-a",
        namespace="x",
        name="pod-uid-a",
        project_id=world.ids["project"],
        resource_version="1",
        observed_at=at,
    )
    MeterAnomaly.objects.create(cluster=row.cluster, pod_uid="uid-a", finding="end_before_start", detail="dropped")
    return world


def test_usage_shows_every_sum_to_four_decimals_with_the_rows_behind_it(metered: World) -> None:
    viewer = client_of(metered, "viewer")
    text = viewer.get(f"/projects/{metered.ids['project']}/usage/").content.decode()
    assert str(Decimal("0.0417")) in text  # 150 device seconds
    assert "tiny-chat" in text
    assert "observer was down" in text
    assert "end before start" in text
    assert "unknown: no rate set" in text
    link = re.search(r'href="([^"]+/usage/intervals/\?[^"]*deployment=[^"]+)"', text)
    assert link
    behind = viewer.get(link[1].replace("&amp;", "&")).content.decode()
    assert behind.count("data-interval=") == 2
    assert "0.0333" in behind
    assert "0.0083" in behind


def test_the_rows_behind_what_is_nobodys_are_those_alone(metered: World) -> None:
    viewer = client_of(metered, "viewer")
    GpuInterval.objects.filter(pod_uid="uid-a").update(consumer_kind="", consumer_id="")
    text = viewer.get(f"/projects/{metered.ids['project']}/usage/").content.decode()
    link = re.search(r'href="([^"]+/usage/intervals/\?[^"]*deployment=)"', text)
    assert link
    behind = viewer.get(link[1].replace("&amp;", "&")).content.decode()
    assert behind.count("data-interval=") == 1
    assert "uid-a" in behind


@pytest.mark.parametrize("query", ["month=2026-13", "month=x", "month=0000-01"])
def test_a_month_that_is_none_is_said(world: World, query: str) -> None:
    answer = client_of(world, "viewer").get(f"/projects/{world.ids['project']}/usage/?{query}")
    assert answer.status_code == 400
    assert "2026-11" in answer.content.decode()


@pytest.mark.parametrize("query", ["day=2026-02-30", "day=x", "cursor=x"])
def test_a_wrong_day_or_cursor_is_said(world: World, query: str) -> None:
    assert client_of(world, "viewer").get(f"/projects/{world.ids['project']}/usage/intervals/?{query}").status_code == 400


def test_months_lead_back_and_never_into_the_future(world: World) -> None:
    viewer = client_of(world, "viewer")
    this = viewer.get(f"/projects/{world.ids['project']}/usage/").content.decode()
    assert "Earlier month" in this
    assert "Later month" not in this
    assert "Later month" in viewer.get(f"/projects/{world.ids['project']}/usage/?month=2026-01").content.decode()


def test_the_fleet_names_what_one_may_read_and_counts_the_rest(world: World) -> None:
    add_to(world, 1, 2)
    text = client_of(world, "viewer").get("/fleet/").content.decode()
    assert "node-01" in text
    assert "1 by other projects" in text
    assert world.cast.project.name in text
    stranger = client_of(world, "outsider").get("/fleet/").content.decode()
    assert world.cast.project.name not in stranger
    assert world.ids["deployment"] not in stranger


def test_an_unchanged_fleet_costs_an_empty_answer(world: World) -> None:
    add_to(world, 1, 2)
    viewer = client_of(world, "viewer")
    page = viewer.get("/fleet/").content.decode()
    seen = re.search(r'"seen": "([0-9a-f]+)"', page)
    assert seen
    assert viewer.get("/fleet/live/", {"seen": seen[1]}, headers={"HX-Request": "true"}).status_code == 204
    with unscoped("test"):
        ObservedPod.objects.filter(name="pod-1").update(devices={"nvidia.com/gpu": 3})
    changed = viewer.get("/fleet/live/", {"seen": seen[1]}, headers={"HX-Request": "true"})
    assert changed.status_code == 200
    assert 'id="fleet-body"' in changed.content.decode()


def test_the_local_build_shows_its_progress_and_a_half_written_file_shows_nothing(
    world: World, settings: object, tmp_path: object
) -> None:
    file = tmp_path / "progress.json"  # type: ignore[operator]
    settings.LOCAL_PROGRESS_FILE = str(file)  # type: ignore[attr-defined]
    viewer = client_of(world, "viewer")
    for content, shown in (
        (
            '{"step": "Building kube-apiserver", "fraction": 0.4, "done": false, "failed": "", "at": ""}',
            "kube-apiserver, 40 %",
        ),
        ('{"step": "Building", "fraction": null, "done": true, "failed": "go is missing", "at": ""}', "go is missing"),
    ):
        file.write_text(content)
        assert shown in viewer.get("/fleet/").content.decode()
    for content in ('{"step": "Buil', '{"step": "Up", "fraction": 1, "done": true, "failed": "", "at": ""}'):
        file.write_text(content)
        assert "local-progress" not in viewer.get("/fleet/").content.decode()


@pytest.mark.parametrize("address", ["", "usage/", "usage/intervals/", "keys/"])
def test_strangers_get_the_page_of_an_address_that_never_was(world: World, address: str) -> None:
    outsider = client_of(world, "outsider")
    foreign = outsider.get(f"/projects/{world.ids['project']}/{address}")
    never = outsider.get(f"/projects/prj_00000000000000000000/{address}")
    assert foreign.status_code == never.status_code == 404
