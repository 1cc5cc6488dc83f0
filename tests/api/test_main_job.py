"""The main job through REST alone: ask, decide, read and delete the deployment, make a key, read what was used."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from fleet.models import GpuInterval, QuotaHold
from models_app.models import Deployment
from portal.audit.models import AuditEvent
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work.models import Desired
from routing.models import ApiKey
from tests.api.conftest import Api
from tests.cast import Cast, make_cluster, make_grant, make_profile

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(cast: Cast, api: Api) -> dict[str, Any]:
    make_grant(cast.project, make_profile("h100"), devices=8)
    make_cluster("local")
    answer = api("member").post(
        "/api/v1/requests/",
        {
            "kind": "deployment",
            "project": cast.project.public_id,
            "payload": {
                "name": "tiny-chat",
                "profile": "h100",
                "source": "hf://acme/tiny",
                "source_revision": "a" * 40,
                "source_file": "tiny.gguf",
                "backend": "llamacpp",
            },
            "justification": "For the demo.",
        },
    )
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_ask_shows_the_request_as_it_stands(cast: Cast, asked: dict[str, Any]) -> None:
    assert asked["state"] == "submitted"
    assert asked["requester"]["id"] == cast.member.public_id
    assert asked["may"] == ["withdraw"]
    assert asked["decisions"] == []


def test_approve_holds_quota_and_declares_the_deployment(api: Api, asked: dict[str, Any]) -> None:
    lead = api("lead")
    inbox = lead.get("/api/v1/requests/inbox/").json()["results"]
    assert [row["id"] for row in inbox] == [asked["id"]]
    assert inbox[0]["may"] == ["approve", "deny"]

    decided = lead.post(f"/api/v1/requests/{asked['id']}/decide/", {"verdict": "approve"})

    assert decided.status_code == 200, decided.json()
    assert decided.json()["state"] == "approved"
    assert decided.json()["made_kind"] == "deployment"
    made = api("viewer").get(f"/api/v1/deployments/{decided.json()['made_id']}/")
    assert made.status_code == 200, made.json()
    assert made.json()["name"] == "tiny-chat"
    assert made.json()["held_devices"] == 1
    assert {fact["name"] for fact in made.json()["facts"]} >= {
        "declared",
        "admitted",
        "cached",
        "loading",
        "ready",
        "serving",
    }
    with unscoped("test"):
        assert QuotaHold.objects.get(ended_at=None).devices == 1


def test_a_member_may_not_decide_and_a_stranger_sees_nothing(api: Api, asked: dict[str, Any]) -> None:
    address = f"/api/v1/requests/{asked['id']}/decide/"
    assert api("viewer").post(address, {"verdict": "approve"}).status_code == 403
    stranger = api("outsider").post(address, {"verdict": "approve"})
    assert stranger.status_code == 404
    assert stranger.json() == {"code": "not_found", "detail": "Not found.", "fields": {}}
    own = api("member").post(address, {"verdict": "approve"})
    assert own.status_code == 403


def test_a_get_on_decide_changes_nothing(api: Api, asked: dict[str, Any]) -> None:
    """C37: approve and deny do not work by a link."""
    answer = api("lead").get(f"/api/v1/requests/{asked['id']}/decide/")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method_not_allowed"
    assert api("lead").get(f"/api/v1/requests/{asked['id']}/").json()["state"] == "submitted"


def test_delete_the_deployment_and_again(api: Api, asked: dict[str, Any]) -> None:
    decided = api("lead").post(f"/api/v1/requests/{asked['id']}/decide/", {"verdict": "approve"}).json()
    address = f"/api/v1/deployments/{decided['made_id']}/"
    member = api("member")
    for _ in range(2):
        answer = member.delete(address)
        assert answer.status_code == 202, answer.json()
        assert answer.json()["desired"] == "absent"
    with unscoped("test"):
        assert Deployment.objects.get().desired == Desired.ABSENT
    assert AuditEvent.objects.filter(object_kind="deployment", channel="api", action__contains="delete").count() == 1


def test_make_a_key_once_shown_and_revoke_it(cast: Cast, api: Api) -> None:
    member = api("member")
    made = member.post(f"/api/v1/projects/{cast.project.public_id}/keys/", {"name": "laptop"})
    assert made.status_code == 201, made.json()
    secret = made.json()["secret"]
    assert secret.startswith("slk_")
    listed = member.get(f"/api/v1/projects/{cast.project.public_id}/keys/").json()["results"]
    assert [row["id"] for row in listed] == [made.json()["id"]]
    assert "secret" not in listed[0]
    assert secret not in str(list(AuditEvent.objects.values()))

    assert member.delete(f"/api/v1/keys/{made.json()['id']}/").status_code == 204
    with unscoped("test"):
        assert ApiKey.objects.get().revoked_at is not None
    assert AuditEvent.objects.filter(action="key.revoke", token_id__startswith="tok_").count() == 1


def test_usage_and_the_intervals_behind_it(cast: Cast, api: Api, deployment: Deployment) -> None:
    start = now().replace(hour=0, minute=0, second=0, microsecond=0)
    GpuInterval.objects.create(
        cluster=deployment.cluster,
        pod_uid="uid-1",
        resource_name="nvidia.com/gpu",
        namespace=cast.project.namespace,
        pod_name="tiny-1",
        project_id=cast.project.public_id,
        consumer_kind="deployment",
        consumer_id=deployment.public_id,
        profile_name="h100",
        devices=2,
        gpu_equiv_ppm=1_000_000,
        started_at=start,
        ended_at=start + timedelta(minutes=90, microseconds=1),
        start_basis="pod_scheduled",
        end_basis="container_finished",
    )
    period = {"start": start.isoformat(), "end": (start + timedelta(days=1)).isoformat()}
    viewer = api("viewer")
    for by, key in (("deployment", deployment.public_id), ("day", start.date().isoformat()), ("profile", "h100")):
        answer = viewer.get(f"/api/v1/projects/{cast.project.public_id}/usage/", {**period, "by": by})
        assert answer.status_code == 200, answer.json()
        assert [line["key"] for line in answer.json()["lines"]] == [key]
        total = answer.json()["total"]
        assert total["slot_us"] == 2 * (90 * 60 * 1_000_000 + 1)
        assert Decimal(total["slot_hours"]) == Decimal("3.0000")
    behind = viewer.get(f"/api/v1/projects/{cast.project.public_id}/intervals/", period).json()["results"]
    assert [row["pod_uid"] for row in behind] == ["uid-1"]
    assert api("outsider").get(f"/api/v1/projects/{cast.project.public_id}/usage/").status_code == 404
