"""Idempotency-Key: a POST that is sent again gets the first answer, and is done once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from rest_framework.test import APIClient

from portal.kernel.clock import frozen, now
from portal.kernel.errors import Conflict, InvalidInput
from portal.tenancy.models import ApiToken, Project, unscoped
from portal.tenancy.services.tokens import token_create
from portal.work.models import IdempotencyRecord
from portal.work.services.idempotency import Answer, idempotency_claim, idempotency_release, idempotency_store
from routing.models import ApiKey
from tests.api.conftest import Api
from tests.cast import Cast, actor_of

pytestmark = pytest.mark.django_db
TOGETHER = 12

ACTOR = "usr_00000000000000000000"


def test_a_repeat_gets_the_first_answer_and_makes_nothing(cast: Cast, api: Api) -> None:
    admin = api("org_admin")
    body = {"organization": cast.organization.public_id, "name": "Robotics"}
    before = Project.objects.count()
    first = admin.post("/api/v1/projects/", body, HTTP_IDEMPOTENCY_KEY="k-1")
    again = admin.post("/api/v1/projects/", body, HTTP_IDEMPOTENCY_KEY="k-1")
    assert first.status_code == again.status_code == 201
    assert again.json() == first.json()
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert Project.objects.count() == before + 1


def test_the_key_of_another_request_is_409_and_of_another_person_is_free(cast: Cast, api: Api) -> None:
    admin = api("org_admin")
    body = {"organization": cast.organization.public_id, "name": "Robotics"}
    admin.post("/api/v1/projects/", body, HTTP_IDEMPOTENCY_KEY="k-1")
    other = admin.post("/api/v1/projects/", {**body, "name": "Drones"}, HTTP_IDEMPOTENCY_KEY="k-1")
    assert other.status_code == 409
    assert other.json()["code"] == "idempotency_key_reused"
    token = {"name": "t", "scopes": ["read"], "expires_in_days": 1}
    assert api("member").post("/api/v1/tokens/", token, HTTP_IDEMPOTENCY_KEY="k-1").status_code == 201


def test_a_refusal_gives_the_key_back(cast: Cast, api: Api) -> None:
    member = api("member")
    address = f"/api/v1/projects/{cast.project.public_id}/keys/"
    assert member.post(address, {"name": ""}, HTTP_IDEMPOTENCY_KEY="k-2").status_code == 400
    assert member.post(address, {"name": "right"}, HTTP_IDEMPOTENCY_KEY="k-2").status_code == 201


def test_secrets_are_never_kept(cast: Cast, api: Api) -> None:
    member = api("member")
    address = f"/api/v1/projects/{cast.project.public_id}/keys/"
    first = member.post(address, {"name": "laptop"}, HTTP_IDEMPOTENCY_KEY="k-3").json()
    again = member.post(address, {"name": "laptop"}, HTTP_IDEMPOTENCY_KEY="k-3").json()
    assert again == {**first, "secret": None}
    assert first["secret"] not in str(list(IdempotencyRecord.objects.values()))
    with unscoped("test"):
        assert ApiKey.objects.count() == 1
    body = {"name": "t", "scopes": ["read"], "expires_in_days": 1}
    token = member.post("/api/v1/tokens/", body, HTTP_IDEMPOTENCY_KEY="k-4").json()
    assert token["secret"] not in str(list(IdempotencyRecord.objects.values()))
    assert ApiToken.objects.filter(name="t").count() == 1


def test_while_the_first_runs_and_after_it_was_cut_off() -> None:
    with frozen(now()) as clock:
        assert idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f") is None
        with pytest.raises(Conflict) as running:
            idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f")
        assert running.value.code == "in_progress"
        clock.advance(timedelta(minutes=3))
        with pytest.raises(Conflict) as unknown:
            idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f")
        assert unknown.value.code == "outcome_unknown"


def test_answers_are_kept_for_a_day() -> None:
    with frozen(now()) as clock:
        idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f")
        idempotency_store(actor_id=ACTOR, key="k", answer=Answer(status=201, body={"a": 1}, headers={"ETag": '"1"'}))
        clock.advance(timedelta(hours=23))
        assert idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f") == Answer(201, {"a": 1}, {"ETag": '"1"'})
        clock.advance(timedelta(hours=2))
        assert idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f") is None


def test_a_release_never_drops_an_answer() -> None:
    idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f")
    idempotency_store(actor_id=ACTOR, key="k", answer=Answer(status=200, body=None))
    idempotency_release(actor_id=ACTOR, key="k")
    assert idempotency_claim(actor_id=ACTOR, key="k", fingerprint="f") == Answer(200, None)


@pytest.mark.parametrize("key", ["", "x" * 256, "ä", "a\nb"])
def test_a_key_that_cannot_be_kept_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        idempotency_claim(actor_id=ACTOR, key=key, fingerprint="f")


@pytest.mark.django_db(transaction=True)
def test_race_of_repeats_is_done_once(cast: Cast) -> None:
    """The same POST sent from many threads at once: one project, and nobody is told of two."""
    _, secret = token_create(actor=actor_of(cast.org_admin), name="t", scopes=["write"], expires_in_days=1)
    body = {"organization": cast.organization.public_id, "name": "Robotics"}
    start = threading.Barrier(TOGETHER)

    def send(_: int) -> tuple[int, str]:
        client = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}", HTTP_IDEMPOTENCY_KEY="race")
        start.wait(10)
        try:
            answer = client.post("/api/v1/projects/", body, format="json")
            return answer.status_code, answer.json().get("id") or answer.json()["code"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(TOGETHER) as pool:
        answers = list(pool.map(send, range(TOGETHER)))
    made = {said for status, said in answers if status == 201}
    refused = {said for status, said in answers if status != 201}
    assert len(made) == 1
    assert refused <= {"in_progress"}
    assert Project.objects.filter(name="Robotics").count() == 1
