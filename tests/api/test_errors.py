"""One error shape, whatever is refused and wherever (design §6, contract A1)."""

from __future__ import annotations

import pytest
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from portal.kernel.errors import QuotaExceeded, Unavailable
from portal.tenancy.api.errors import exception_handler, flattened
from tests.api.conftest import Api
from tests.cast import Cast

SHAPE = {"code", "detail", "fields"}
UNKNOWN = "prj_00000000000000000000"


@pytest.mark.parametrize(
    ("detail", "fields"),
    [
        ({"name": ["Too long."]}, {"name": ["Too long."]}),
        ({"payload": {"replicas": ["Whole."]}}, {"payload.replicas": ["Whole."]}),
        ({"rows": [{}, {"id": ["Unknown."]}]}, {"rows.1.id": ["Unknown."]}),
        ({"rows": {1: ["Unknown."]}}, {"rows.1": ["Unknown."]}),
        (["All wrong."], {"": ["All wrong."]}),
        ({"non_field_errors": ["Start before end."]}, {"": ["Start before end."]}),
        ({"a": {"non_field_errors": ["No."]}, "b": "No."}, {"a": ["No."], "b": ["No."]}),
    ],
)
def test_nested_messages_become_paths(detail: object, fields: dict[str, list[str]]) -> None:
    assert flattened(ValidationError(detail).detail) == fields


def test_a_services_refusal_keeps_code_and_status() -> None:
    answer = exception_handler(QuotaExceeded("8 of 8 are held.", fields={"devices": ["0 free."]}), {})
    assert answer.status_code == 409
    assert answer.data == {"code": "quota_exceeded", "detail": "8 of 8 are held.", "fields": {"devices": ["0 free."]}}
    assert exception_handler(Unavailable("Later."), {}).headers["Retry-After"] == "5"


def test_the_unexpected_is_logged_and_says_no_more_than_its_id() -> None:
    answer = exception_handler(RuntimeError("postgresql://user:secret@db"), {})
    assert answer.status_code == 500
    assert "secret" not in str(answer.data)
    assert set(answer.data) == SHAPE


@pytest.mark.django_db
def test_refusals_of_every_kind_have_the_shape(cast: Cast, api: Api) -> None:
    member = api("member")
    malformed = member.post("/api/v1/requests/", data="{", content_type="application/json")
    form = member.post("/api/v1/requests/", data="a=b", content_type="application/x-www-form-urlencoded")
    answers = {
        400: member.post("/api/v1/requests/", {"kind": 7, "payload": []}),
        401: APIClient().get("/api/v1/me/"),
        403: api("viewer").post(f"/api/v1/projects/{cast.project.public_id}/keys/", {"name": "x"}),
        404: member.get(f"/api/v1/projects/{UNKNOWN}/"),
        405: member.post("/api/v1/me/"),
        406: member.get("/api/v1/me/", HTTP_ACCEPT="text/html"),
        415: form,
    }
    for status, answer in answers.items():
        assert answer.status_code == status, (status, answer.content)
        assert answer.headers["Content-Type"] == "application/json", status
        assert set(answer.json()) == SHAPE, status
    assert set(answers[400].json()["fields"]) == {"payload", "project"}
    assert malformed.status_code == 400
    assert malformed.json()["code"] == "malformed"


@pytest.mark.django_db
def test_an_address_that_leads_nowhere_answers_as_an_unknown_id_does(cast: Cast, api: Api) -> None:
    outsider = api("outsider")
    bodies = {
        outsider.get(address).content
        for address in (
            f"/api/v1/projects/{cast.project.public_id}/",
            f"/api/v1/projects/{UNKNOWN}/",
            "/api/v1/projects/%00/",
            "/api/v1/nothing/",
            "/api/v2/",
        )
    }
    assert bodies == {b'{"code":"not_found","detail":"Not found.","fields":{}}'}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "payload",
    [
        '{"a": "\\u0000"}',
        '{"a": "\\ud800"}',
        '{"a": 1e999}',
        "[1]",
        '"x"',
        '{"a": ' + "[" * 40 + "]" * 40 + "}",
        '{"\\u0000": 1}',
    ],
)
def test_what_the_database_cannot_hold_is_refused_as_input(cast: Cast, api: Api, payload: str) -> None:
    body = f'{{"kind": "deployment", "project": "{cast.project.public_id}", "payload": {payload}}}'
    answer = api("member").post("/api/v1/requests/", data=body, content_type="application/json")
    assert answer.status_code == 400, answer.content
    assert "payload" in answer.json()["fields"]


@pytest.mark.django_db
def test_a_body_larger_than_taken_is_413(api: Api) -> None:
    body = '{"name": "' + "x" * 3_000_000 + '"}'
    answer = api("member").post("/api/v1/tokens/", data=body, content_type="application/json")
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"
