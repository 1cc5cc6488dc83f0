"""The pages of the main job: each renders for who may see it, and does what it offers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from fleet.models import Grant
from models_app.models import Deployment
from portal.approvals.models import Request
from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from tests.cast import PASSWORD, Cast, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db


@pytest.fixture
def grant(cast: Cast) -> Grant:
    make_cluster("local")
    return make_grant(cast.project, make_profile("h100", title="H100 80 GB"), devices=8)


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def asked(cast: Cast, **changes: str) -> Request:
    form = {"name": "tiny", "source": "hf://acme/tiny", "source_file": "tiny.gguf", "profile": "h100", "backend": "llamacpp"}
    answer = signed_in(cast.member).post(f"/projects/{cast.project.public_id}/ask/", {**form, **changes})
    assert answer.status_code == 302, answer.content.decode()
    with unscoped("a test reads the row"):
        return Request.objects.get(public_id=answer["Location"].split("/")[-2])


def test_sign_in_with_the_right_password_leads_to_the_page_that_was_wanted(cast: Cast) -> None:
    client = Client()
    wanted = client.get("/inbox/")
    assert wanted.status_code == 302
    assert wanted["Location"] == "/accounts/login/?next=%2Finbox%2F"
    page = client.get(wanted["Location"])
    assert b'data-testid="sign-in"' in page.content
    wrong = client.post(wanted["Location"], {"login": cast.lead.email, "password": "wrong", "next": "/inbox/"})
    assert wrong.status_code == 200
    assert b"form-errors" in wrong.content
    right = client.post(wanted["Location"], {"login": cast.lead.email, "password": PASSWORD, "next": "/inbox/"})
    assert right.status_code == 302
    assert right["Location"] == "/inbox/"
    assert client.get("/inbox/").status_code == 200


@pytest.mark.parametrize("name", ["viewer", "member", "lead", "org_admin", "fleet_operator", "auditor", "platform_admin"])
def test_everybody_has_a_home_an_inbox_lists_and_the_fleet(cast: Cast, grant: Grant, name: str) -> None:
    client = signed_in(cast.people()[name])
    for address in ("/", "/inbox/", "/requests/", "/deployments/", "/fleet/", "/ask/", "/tokens/"):
        assert client.get(address, follow=True).status_code == 200, address


def test_the_form_asks_and_the_request_page_tells_who_decides(cast: Cast, grant: Grant) -> None:
    client = signed_in(cast.member)
    form = client.get(f"/projects/{cast.project.public_id}/ask/")
    assert b"8 of 8 granted free" in form.content
    request = asked(cast)
    assert request.payload["profile"] == "h100"
    page = client.get(f"/requests/{request.public_id}/").content.decode()
    assert 'data-state="submitted"' in page
    assert 'data-testid="withdraw"' in page
    assert 'data-testid="approve"' not in page


def test_what_the_service_refuses_stands_at_its_field_and_nothing_typed_is_lost(cast: Cast, grant: Grant) -> None:
    client = signed_in(cast.member)
    form = {"name": "Not A Name!", "source": "hf://acme/tiny", "profile": "h100", "justification": "for a paper"}
    address = f"/projects/{cast.project.public_id}/ask/"
    assert b'data-testid="error-memory"' in client.post(address, {**form, "memory": "1KB"}).content
    answer = client.post(address, form)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'data-testid="error-name"' in page
    assert "for a paper" in page
    assert "Not A Name!" in page
    with unscoped("a test counts"):
        assert Request.objects.count() == 0


def test_the_preview_answers_while_the_form_is_half_filled(cast: Cast, grant: Grant) -> None:
    client = signed_in(cast.member)
    address = f"/projects/{cast.project.public_id}/ask/preview/"
    half = client.post(address, {"profile": "h100"})
    assert half.status_code == 200
    assert b"preview-problems" in half.content
    whole = client.post(
        address,
        {"name": "tiny", "source": "hf://acme/tiny", "source_file": "t.gguf", "profile": "h100", "backend": "llamacpp"},
    )
    page = whole.content.decode()
    assert "preview-checks" in page
    assert "unknown: no rate set" in page


def test_the_lead_approves_from_the_inbox_and_the_deployment_has_a_page(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    lead = signed_in(cast.lead)
    inbox = lead.get("/inbox/").content.decode()
    assert f'data-request="{request.public_id}"' in inbox
    assert "1 of 8" in inbox
    answer = lead.post("/inbox/decide/", {"approve": request.public_id, f"version-{request.public_id}": request.version})
    assert answer.status_code == 302
    with unscoped("a test reads the row"):
        request.refresh_from_db()
        deployment = Deployment.objects.get()
    assert request.state == "approved"
    page = signed_in(cast.viewer).get(f"/deployments/{deployment.public_id}/").content.decode()
    for fact in ("declared", "admitted", "cached", "loading", "ready", "idle", "serving", "draining", "deleting", "unknown"):
        assert f'data-fact="{fact}"' in page
    assert "not measured here" in page
    assert 'data-testid="delete-form"' not in page
    assert (
        'data-testid="delete-form"' in signed_in(cast.member).get(f"/deployments/{deployment.public_id}/").content.decode()
    )


def test_a_request_tells_its_story_in_order_and_its_payload_in_the_words_of_the_form(cast: Cast, grant: Grant) -> None:
    request = asked(cast, arguments="--flash-attn\n--mlock", justification="for a paper")
    lead = signed_in(cast.lead)
    lead.post(f"/requests/{request.public_id}/approve/")
    lead.post(f"/requests/{request.public_id}/revoke/", {"reason": "The paper is out."})
    page = lead.get(f"/requests/{request.public_id}/").content.decode()
    story = [page.index(text) for text in ("Asked by", "Approved by", "Revoked</span>")]
    assert story == sorted(story)
    for words in ("<dt>GPUs a replica</dt>", "--flash-attn --mlock", "for a paper"):
        assert words in page
    assert "devices_per_replica" not in page


def test_c37_approving_by_get_changes_nothing(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    lead = signed_in(cast.lead)
    for act in ("approve", "deny", "withdraw", "revoke"):
        assert lead.get(f"/requests/{request.public_id}/{act}/").status_code == 405
    assert lead.get("/inbox/decide/").status_code == 405
    with unscoped("a test reads the row"):
        request.refresh_from_db()
    assert request.state == "submitted"
    approve = f"/requests/{request.public_id}/approve/"
    assert lead.post(approve).status_code == 302
    assert lead.post(approve).status_code == 302  # a second click changes nothing
    with unscoped("a test counts"):
        assert Deployment.objects.count() == 1


def test_a_bulk_decision_says_which_were_refused_and_decides_the_others(cast: Cast, grant: Grant) -> None:
    one, other = asked(cast, name="one"), asked(cast, name="other", devices_per_replica="8", replicas_max="1")
    lead = signed_in(cast.lead)
    page = lead.post("/inbox/decide/", {"requests": [one.public_id, other.public_id], "bulk": "approve"}, follow=True)
    text = page.content.decode()
    assert "Not decided: " in text
    assert "Approved: " in text
    with unscoped("a test reads the rows"):
        states = {row.public_id: row.state for row in Request.objects.all()}
    assert states == {one.public_id: "approved", other.public_id: "submitted"}


def test_a_form_sent_by_no_button_decides_nothing(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    page = signed_in(cast.lead).post("/inbox/decide/", {"requests": [request.public_id], "reason": "x"}, follow=True)
    assert b"Nothing was decided" in page.content
    with unscoped("a test reads the row"):
        request.refresh_from_db()
    assert request.state == "submitted"


def test_denying_needs_a_reason_and_one_cannot_decide_ones_own(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    lead = signed_in(cast.lead)
    refused = lead.post(f"/requests/{request.public_id}/deny/", {"reason": " "})
    assert refused.status_code == 400
    assert b"Say why" in refused.content
    assert signed_in(cast.member).post(f"/requests/{request.public_id}/approve/").status_code == 403
    assert signed_in(cast.outsider).post(f"/requests/{request.public_id}/approve/").status_code == 404


def test_a_deployment_tells_how_to_call_it_while_it_stands(cast: Cast, grant: Grant, settings: Any) -> None:
    settings.GATEWAY_PUBLIC_URL = "https://models.example"
    row = make_deployment(grant, make_cluster("other"), author=cast.member, name="tiny")
    client = signed_in(cast.viewer)
    page = client.get(f"/deployments/{row.public_id}/").content.decode()
    assert 'base_url="https://models.example/v1"' in page
    assert 'model="tiny"' in page
    assert "https://models.example/v1/chat/completions" in page
    with unscoped("a test changes the row"):
        Deployment.objects.filter(pk=row.pk).update(desired="absent", archived_at=now())
    assert "base_url" not in client.get(f"/deployments/{row.public_id}/").content.decode()


def test_deleting_needs_the_name_and_a_stale_page_is_told(cast: Cast, grant: Grant) -> None:
    row = make_deployment(grant, make_cluster("other"), author=cast.member, name="tiny")
    member = signed_in(cast.member)
    address = f"/deployments/{row.public_id}/delete/"
    assert member.post(address, {"confirm": "wrong", "version": row.version}).status_code == 400
    stale = member.post(address, {"confirm": "tiny", "version": row.version + 1})
    assert stale.status_code == 412
    assert member.post(address, {"confirm": "tiny", "version": row.version}).status_code == 302
    with unscoped("a test reads the row"):
        row.refresh_from_db()
    assert row.desired == "absent"


def test_scaling_beyond_the_grant_is_refused_in_words(cast: Cast, grant: Grant) -> None:
    row = make_deployment(grant, make_cluster("other"), author=cast.member, name="tiny")
    answer = signed_in(cast.member).post(
        f"/deployments/{row.public_id}/scale/", {"replicas_min": 1, "replicas_max": 9, "version": row.version}
    )
    assert answer.status_code == 409
    assert b"9 devices" in answer.content


def test_a_foreign_id_and_one_that_never_was_get_the_same_page(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    row = make_deployment(grant, make_cluster("other"), author=cast.member, name="tiny")
    outsider = signed_in(cast.outsider)
    pairs = [
        (f"/requests/{request.public_id}/", "/requests/req_00000000000000000000/"),
        (f"/deployments/{row.public_id}/", "/deployments/dep_00000000000000000000/"),
        (f"/projects/{cast.project.public_id}/", "/projects/prj_00000000000000000000/"),
        (f"/deployments/?project={cast.project.public_id}", "/deployments/?project=prj_00000000000000000000"),
    ]
    for foreign, never in pairs:
        one, two = outsider.get(foreign), outsider.get(never)
        assert one.status_code == two.status_code == 404
        assert _still(one.content) == _still(two.content)


def test_a_live_fragment_is_answered_empty_until_something_changed(cast: Cast, grant: Grant) -> None:
    row = make_deployment(grant, make_cluster("other"), author=cast.member, name="tiny")
    client = signed_in(cast.member)
    address = f"/deployments/{row.public_id}/live/"
    first = client.get(address, headers={"HX-Request": "true"})
    seen = re.search(r'"seen": "(\w+)"', first.content.decode())
    assert seen is not None
    assert client.get(address, {"seen": seen[1]}, headers={"HX-Request": "true"}).status_code == 204
    with unscoped("a test changes the row"):
        Deployment.objects.filter(pk=row.pk).update(desired="absent")
    changed = client.get(address, {"seen": seen[1]}, headers={"HX-Request": "true"})
    assert changed.status_code == 200
    assert b'data-state="deleting"' in changed.content


def test_c33_a_fragment_of_an_ended_session_sends_the_whole_page_to_sign_in(cast: Cast) -> None:
    client = Client()
    answer = client.get("/fleet/live/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/fleet/?x=1"})
    assert answer.status_code == 401
    assert answer["HX-Redirect"] == "/accounts/login/?next=%2Ffleet%2F%3Fx%3D1"
    assert answer.content == b""
    foreign = client.get("/fleet/live/", headers={"HX-Request": "true", "HX-Current-URL": "https://evil.example/fleet/"})
    assert foreign["HX-Redirect"] == "/accounts/login/?next=%2F"
    assert client.get("/fleet/")["Location"] == "/accounts/login/?next=%2Ffleet%2F"
    posted = client.post("/inbox/decide/", headers={"Referer": "http://testserver/inbox/"})
    assert posted["Location"] == "/accounts/login/?next=%2Finbox%2F"


def test_c33_a_stale_token_gets_a_fragment_in_a_fragment_and_a_page_on_a_page(cast: Cast, grant: Grant) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.member)
    address = f"/projects/{cast.project.public_id}/ask/preview/"
    fragment = client.post(address, {"name": "x"}, headers={"HX-Request": "true"})
    assert fragment.status_code == 403
    assert fragment["HX-Retarget"] == "#notices"
    assert b"<html" not in fragment.content
    page = client.post(f"/projects/{cast.project.public_id}/ask/", {"name": "x"})
    assert page.status_code == 403
    assert b"<html" in page.content


def test_a_failing_sign_in_does_not_loop_and_locks_after_five(cast: Cast) -> None:
    client = Client()
    form = {"login": cast.member.email, "password": "wrong"}
    answers = [client.post("/accounts/login/", form) for _ in range(6)]
    assert all(answer.status_code == 200 for answer in answers[:5])
    locked = answers[5].content.decode() + client.post("/accounts/login/", {**form, "password": PASSWORD}).content.decode()
    assert "Too many failed login attempts" in locked


def test_every_answer_carries_its_request_id_and_the_policy(cast: Cast) -> None:
    answer = Client().get("/accounts/login/", headers={"X-Request-ID": "abcdef12-click"})
    assert answer["X-Request-ID"] == "abcdef12-click"
    assert Client().get("/accounts/login/", headers={"X-Request-ID": "bad id\n"})["X-Request-ID"] != "bad id\n"
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert " style=" not in page
    assert "onclick" not in page
    assert not re.search(r"<script(?![^>]*src=)", page)


def _still(content: bytes) -> str:
    return re.sub(r'nonce="[^"]*"|name="csrfmiddlewaretoken" value="[^"]*"', "", content.decode())


def test_a_null_character_is_refused_before_it_reaches_the_database(cast: Cast, grant: Grant) -> None:
    request = asked(cast)
    lead = signed_in(cast.lead)
    address = f"/projects/{cast.project.public_id}/usage/intervals/"
    for answer in (
        lead.get("/requests/", {"project": "prj\x00"}),
        lead.get(address, {"deployment": "\x00"}),
        lead.post("/inbox/decide/", {"bulk": "1", "requests": ["req\x00"]}),
        lead.post(f"/requests/{request.public_id}/deny/", {"reason": "no\x00"}),
    ):
        assert answer.status_code == 400
        assert b"null character" in answer.content
    with unscoped("a test reads the row"):
        request.refresh_from_db()
    assert request.state == "submitted"
