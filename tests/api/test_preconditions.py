"""ETag and If-Match: nobody's change is overwritten unseen."""

from __future__ import annotations

import pytest

from models_app.models import Deployment
from tests.api.conftest import Api
from tests.cast import Cast

pytestmark = pytest.mark.django_db

BODY = {"replicas_min": 1, "replicas_max": 2}


def test_a_write_without_if_match_is_428(api: Api, deployment: Deployment) -> None:
    answer = api("member").patch(f"/api/v1/deployments/{deployment.public_id}/", BODY)
    assert answer.status_code == 428
    assert answer.json()["code"] == "precondition_required"


@pytest.mark.parametrize("form", ["{}", "W/{}"])
def test_the_tag_that_was_read_is_taken_even_weakened(api: Api, deployment: Deployment, form: str) -> None:
    member = api("member")
    address = f"/api/v1/deployments/{deployment.public_id}/"
    tag = member.get(address).headers["ETag"]
    changed = member.patch(address, BODY, HTTP_IF_MATCH=form.format(tag))
    assert changed.status_code == 200, changed.json()
    assert changed.json()["replicas_max"] == 2
    assert changed.headers["ETag"] != tag

    stale = member.patch(address, {**BODY, "replicas_max": 3}, HTTP_IF_MATCH=form.format(tag))
    assert stale.status_code == 412
    assert stale.json()["code"] == "stale"
    insisting = member.patch(address, {**BODY, "replicas_max": 3}, HTTP_IF_MATCH="*")
    assert insisting.json()["replicas_max"] == 3


def test_a_compressed_answer_still_gives_a_tag_that_works(api: Api, deployment: Deployment) -> None:
    member = api("member")
    address = f"/api/v1/deployments/{deployment.public_id}/"
    answer = member.get(address, HTTP_ACCEPT_ENCODING="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert member.patch(address, BODY, HTTP_IF_MATCH=answer.headers["ETag"]).status_code == 200


@pytest.mark.parametrize("header", ['"x"', "7", '"-1"', '"1","2"', '"99999999999"'])
def test_a_tag_that_is_none_of_ours_is_400(api: Api, deployment: Deployment, header: str) -> None:
    answer = api("member").patch(f"/api/v1/deployments/{deployment.public_id}/", BODY, HTTP_IF_MATCH=header)
    assert answer.status_code == 400
    assert "If-Match" in answer.json()["fields"]


def test_deleting_with_an_old_tag_is_412_and_without_one_goes(cast: Cast, api: Api, deployment: Deployment) -> None:
    member = api("member")
    address = f"/api/v1/deployments/{deployment.public_id}/"
    assert member.delete(address, HTTP_IF_MATCH='"41"').status_code == 412
    assert member.delete(address).status_code == 202


def test_growth_beyond_the_grant_changes_nothing(api: Api, deployment: Deployment) -> None:
    member = api("member")
    address = f"/api/v1/deployments/{deployment.public_id}/"
    answer = member.patch(address, {"replicas_min": 1, "replicas_max": 9}, HTTP_IF_MATCH="*")
    assert answer.status_code == 409
    assert answer.json()["code"] == "quota_exceeded"
    assert member.get(address).json()["replicas_max"] == 1


def test_a_project_is_renamed_by_version(cast: Cast, api: Api) -> None:
    lead = api("lead")
    address = f"/api/v1/projects/{cast.project.public_id}/"
    tag = lead.get(address).headers["ETag"]
    assert lead.patch(address, {"name": "Seeing"}, HTTP_IF_MATCH=tag).json()["name"] == "Seeing"
    assert lead.patch(address, {"name": "Blind"}, HTTP_IF_MATCH=tag).status_code == 412
    assert lead.get(address).json()["namespace"] == cast.project.namespace
