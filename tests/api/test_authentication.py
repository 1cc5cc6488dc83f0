"""Tokens and sessions: who calls, with what scope, and how a write from a browser proves its origin."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from portal.audit.domain.actors import Scope
from portal.audit.models import AuditEvent
from portal.kernel.clock import frozen, now
from portal.tenancy.models import ApiToken
from portal.tenancy.services.tokens import token_create
from tests.api.conftest import Api
from tests.cast import PASSWORD, Cast, actor_of

pytestmark = pytest.mark.django_db


def _secret(cast: Cast) -> str:
    return token_create(actor=actor_of(cast.member), name="t", scopes=["read"], expires_in_days=1)[1]


def test_nobody_is_401_with_a_challenge(cast: Cast) -> None:
    answer = APIClient().get("/api/v1/projects/")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "not_authenticated"


@pytest.mark.parametrize("change", ["cut", "extended", "other", "empty", "null"])
def test_a_wrong_token_is_401_even_beside_a_session(cast: Cast, change: str) -> None:
    secret = _secret(cast)
    wrong = {
        "cut": secret[:-1],
        "extended": secret + "x",
        "other": secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        "empty": "",
        "null": secret + "\x00",
    }[change]
    client = APIClient()
    client.force_login(cast.member)
    answer = client.get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {wrong}")
    assert answer.status_code == 401
    assert answer.json()["code"] == "bad_token"


def test_expired_revoked_and_inactive_tokens_are_401(cast: Cast) -> None:
    secret = _secret(cast)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert client.get("/api/v1/me/").status_code == 200
    with frozen(now() + timedelta(days=2)):
        assert client.get("/api/v1/me/").status_code == 401
    cast.member.is_active = False
    cast.member.save()
    assert client.get("/api/v1/me/").status_code == 401
    cast.member.is_active = True
    cast.member.save()
    ApiToken.objects.update(revoked_at=now())
    assert client.get("/api/v1/me/").status_code == 401


def test_last_use_is_kept(cast: Cast) -> None:
    APIClient(HTTP_AUTHORIZATION=f"Bearer {_secret(cast)}").get("/api/v1/me/")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_read_token_reads_and_writes_nothing(cast: Cast, api: Api) -> None:
    reader = api("lead", scopes=(Scope.READ,))
    assert reader.get(f"/api/v1/projects/{cast.project.public_id}/").status_code == 200
    answer = reader.post(f"/api/v1/projects/{cast.project.public_id}/keys/", {"name": "x"})
    assert answer.status_code == 403
    assert "write scope" in answer.json()["detail"]
    assert reader.get("/api/v1/me/").json()["scopes"] == ["read"]


def test_a_session_reads_and_writes_with_its_csrf_token_only(cast: Cast) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(cast.member)
    assert client.get("/api/v1/me/").json()["token"] is None
    address = f"/api/v1/projects/{cast.project.public_id}/keys/"
    refused = client.post(address, {"name": "x"}, format="json")
    assert refused.status_code == 403
    assert refused.json()["code"] == "csrf_failed"


def test_the_audit_row_names_channel_token_and_request_id(cast: Cast, api: Api) -> None:
    answer = api("member").post(
        f"/api/v1/projects/{cast.project.public_id}/keys/", {"name": "x"}, HTTP_X_REQUEST_ID="click-0001"
    )
    assert answer.headers["X-Request-ID"] == "click-0001"
    row = AuditEvent.objects.get(action="key.create")
    token = ApiToken.objects.get()
    assert (row.channel, row.token_id, row.request_id, row.actor_id) == (
        "api",
        token.public_id,
        "click-0001",
        cast.member.public_id,
    )


def test_a_password_is_no_token(cast: Cast) -> None:
    client = APIClient()
    answer = client.get("/api/v1/me/", HTTP_AUTHORIZATION=f"Basic {cast.member.email}:{PASSWORD}")
    assert answer.status_code == 401
