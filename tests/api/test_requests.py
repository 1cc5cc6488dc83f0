"""Requests through REST: bulk decisions with one audit row each (C35), previews, and who reads what."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from portal.approvals.models import Request
from portal.audit.models import AuditEvent
from portal.tenancy.models import unscoped
from tests.api.conftest import Api
from tests.cast import Cast, make_cluster, make_grant, make_profile
from tests.table.world import deployment_payload

pytestmark = pytest.mark.django_db


@pytest.fixture
def ground(cast: Cast) -> None:
    make_grant(cast.project, make_profile("h100"), devices=32)
    make_cluster("local")


def _ask(api: Api, cast: Cast, name: str) -> dict[str, Any]:
    answer = api("member").post(
        "/api/v1/requests/",
        {"kind": "deployment", "project": cast.project.public_id, "payload": deployment_payload(name)},
    )
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_c35_a_bulk_approval_leaves_one_row_per_object_with_the_token(cast: Cast, api: Api, ground: None) -> None:
    ids = [_ask(api, cast, f"model-{number}")["id"] for number in range(25)]
    answer = api("lead").post("/api/v1/requests/decide/", {"requests": [*ids, ids[0]], "verdict": "approve"})
    assert answer.status_code == 200
    assert {row["state"] for row in answer.json()["results"]} == {"approved"}
    rows = AuditEvent.objects.filter(action="request.approve")
    assert Counter(row.object_id for row in rows) == dict.fromkeys(ids, 1)
    for row in rows:
        assert (row.channel, row.actor_id) == ("api", cast.lead.public_id)
        assert row.token_id.startswith("tok_")
        assert row.before["state"] == "submitted"
        assert row.after["state"] == "approved"


def test_a_refusal_in_a_bulk_leaves_the_others_decided(cast: Cast, api: Api, ground: None) -> None:
    first, second = _ask(api, cast, "one")["id"], _ask(api, cast, "two")["id"]
    unknown = "req_00000000000000000000"
    answer = api("lead").post("/api/v1/requests/decide/", {"requests": [first, unknown, second], "verdict": "approve"})
    outcome = {row["id"]: (row["state"], row["error"] and row["error"]["code"]) for row in answer.json()["results"]}
    assert outcome == {first: ("approved", None), unknown: (None, "not_found"), second: ("approved", None)}


def test_approving_twice_is_once(cast: Cast, api: Api, ground: None) -> None:
    asked = _ask(api, cast, "one")
    address = f"/api/v1/requests/{asked['id']}/decide/"
    tag = f'"{asked["version"]}"'
    answers = [api(name).post(address, {"verdict": "approve"}, HTTP_IF_MATCH=tag) for name in ("lead", "other_lead", "lead")]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.json()["made_id"] for answer in answers}) == 1
    assert AuditEvent.objects.filter(action="request.approve").count() == 1


def test_a_denial_needs_a_reason_that_its_author_reads(cast: Cast, api: Api, ground: None) -> None:
    address = f"/api/v1/requests/{_ask(api, cast, 'one')['id']}/"
    refused = api("lead").post(f"{address}decide/", {"verdict": "deny"})
    assert refused.status_code == 400
    assert set(refused.json()["fields"]) == {"reason"}
    api("lead").post(f"{address}decide/", {"verdict": "deny", "reason": "Too large."})
    shown = api("member").get(address).json()
    assert shown["state"] == "denied"
    assert shown["decisions"][0]["reason"] == "Too large."
    assert shown["decisions"][0]["decider"]["id"] == cast.lead.public_id
    assert shown["may"] == []


def test_a_preview_says_fit_grant_and_free_and_writes_nothing(cast: Cast, api: Api, ground: None) -> None:
    body = {"kind": "deployment", "project": cast.project.public_id, "payload": deployment_payload("one")}
    answer = api("member").post("/api/v1/requests/preview/", body)
    assert answer.status_code == 200, answer.json()
    assert answer.json()["devices"] == 1
    assert not answer.json()["refused"]
    assert {check["verdict"] for check in answer.json()["checks"]} <= {"ok", "warn", "unknown"}
    with unscoped("test"):
        assert Request.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"devices_per_replica": 0}, "devices_per_replica"),
        ({"profile": "unknown"}, "profile"),
        ({"memory": "16GB"}, "memory"),
        ({"image": "registry.invalid/x:latest"}, "image"),
        ({"name": "x" * 64}, "name"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_asked(
    cast: Cast, api: Api, ground: None, change: dict[str, Any], field: str
) -> None:
    body = {"kind": "deployment", "project": cast.project.public_id, "payload": {**deployment_payload("one"), **change}}
    answer = api("member").post("/api/v1/requests/", body)
    assert answer.status_code == 400, answer.json()
    assert field in answer.json()["fields"]
    with unscoped("test"):
        assert Request.objects.count() == 0


def test_lists_show_what_one_may_read_and_nothing_else(cast: Cast, api: Api, ground: None) -> None:
    asked = _ask(api, cast, "one")["id"]
    for name in ("viewer", "member", "lead", "org_admin", "auditor"):
        assert [row["id"] for row in api(name).get("/api/v1/requests/").json()["results"]] == [asked], name
    for name in ("outsider", "fleet_operator", "platform_admin"):
        assert api(name).get("/api/v1/requests/").json()["results"] == [], name
    filtered = api("viewer").get("/api/v1/requests/", {"state": "approved", "project": cast.project.public_id})
    assert filtered.json()["results"] == []
    assert api("outsider").get("/api/v1/requests/", {"project": cast.project.public_id}).status_code == 404
    assert api("viewer").get("/api/v1/requests/", {"state": "gone"}).status_code == 400


_KEYS = [
    "name", "profile", "cluster", "engine", "backend", "model_format", "source", "source_revision", "source_file", "image",
    "devices_per_replica", "replicas_min", "replicas_max", "cpu", "memory", "vram", "context_length", "arguments",
    "devices", "borrowing_limit", "gpu_hours_per_month", "starts_at", "ends_at",
]  # fmt: skip
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, 10**30, -1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
    | st.sampled_from(
        ["h100", "16Gi", "1e999", "2026-11-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "x" * 5000]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", ["deployment", "grant"])
def test_whatever_a_payload_holds_it_is_taken_or_refused_by_name(cast: Cast, api: Api, ground: None, kind: str) -> None:
    member = api("member")
    base = deployment_payload("fuzzed") if kind == "deployment" else {"profile": "h100", "devices": 1}
    seen: set[int] = set()

    @settings(max_examples=150, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(change=st.dictionaries(st.sampled_from(_KEYS), _VALUES, min_size=1, max_size=3))
    def check(change: dict[str, Any]) -> None:
        try:
            json.dumps(change).encode()
        except ValueError:
            assume(False)
        body = {"kind": kind, "project": cast.project.public_id, "payload": {**base, **change}}
        before = transaction.savepoint()
        answer = member.post("/api/v1/requests/", body)
        transaction.savepoint_rollback(before)
        assert answer.status_code in (201, 400), (change, answer.content)
        seen.add(answer.status_code)
        if answer.status_code == 400:
            assert answer.json()["fields"], (change, answer.json())

    check()
    assert seen == {201, 400}
