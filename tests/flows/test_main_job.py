"""The product's one sentence, on real parts: ask, approve, ready, key, stream, delete, and the ledger tells the truth."""

from __future__ import annotations

import re
import secrets

import pytest
from openai import OpenAI
from playwright.sync_api import Browser, Page, expect

from deploy.local.controlplane_api import Api
from deploy.local.stack import Stack
from tests.flows.pods import Recorder
from tests.flows.rest import Json, Rest
from tests.waiting import eventually

RESEARCHER = "researcher@north-lab.example"
APPROVER = "approver@north-lab.example"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def stream(stack: Stack, key: str, model: str) -> list[str]:
    """What the official client gets from the pod's engine through the door, piece by piece."""
    client = OpenAI(api_key=key, base_url=f"{stack.door_url}/v1", max_retries=0)
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "Say something."}], max_tokens=12, stream=True
    )
    return [chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices]


def models(stack: Stack, key: str) -> set[str]:
    return {model.id for model in OpenAI(api_key=key, base_url=f"{stack.door_url}/v1", max_retries=0).models.list()}


def check_ledger(rest: Rest, project: str, deployment: str, recorder: Recorder) -> None:
    """Each pod that says when it ended is billed to the microsecond; those only seen DELETED are listed apart."""
    pods = recorder.of(deployment)
    assert pods, "the deployment had no pod"

    def intervals() -> list[Json]:
        found: list[Json] = rest.get(f"projects/{project}/intervals/", deployment=deployment)["results"]
        return found if len(found) == len(pods) and all(one["ended_at"] for one in found) else []

    billed = {one["pod_uid"]: one for one in eventually(intervals, within=60, what="every interval is closed")}
    assert set(billed) == set(pods)
    by_stamp = {uid: pod for uid, pod in pods.items() if billed[uid]["end_basis"] == "container_finished"}
    by_event = sorted(uid for uid in pods if billed[uid]["end_basis"] != "container_finished")
    assert by_event == [], f"ended without a finishedAt: {by_event}"
    line = next(one for one in rest.get(f"projects/{project}/usage/")["lines"] if one["key"] == deployment)
    assert line["slot_us"] == sum(pod.device_us for pod in by_stamp.values())
    assert line["open"] is False


def test_main_job_through_rest(stack: Stack, admin: Api) -> None:
    researcher, approver = Rest(stack, RESEARCHER), Rest(stack, APPROVER)
    project = researcher.project("speech")
    model = f"chat-{secrets.token_hex(3)}"
    payload = {
        "name": model,
        "profile": "h100-80gb",
        "source": "hf://north-lab/tiny-chat",
        "source_file": "tiny.gguf",
        "devices_per_replica": 1,
        "replicas_min": 1,
        "replicas_max": 1,
    }
    with Recorder(admin).recording() as recorder:
        preview = researcher.post("requests/preview/", {"project": project, "kind": "deployment", "payload": payload})
        assert not [check for check in preview["checks"] if check["verdict"] == "refuse"], preview
        asked = researcher.post("requests/", {"project": project, "kind": "deployment", "payload": payload})
        own = researcher.call("POST", f"requests/{asked['id']}/decide/", {"verdict": "approve"})
        assert own.status_code == 403, own.text

        decided = approver.post(f"requests/{asked['id']}/decide/", {"verdict": "approve"})
        assert decided["state"] == "approved"
        deployment = decided["made_id"]
        ready = eventually(
            lambda: (found := researcher.get(f"deployments/{deployment}/"))["phase"] == "ready" and found,
            within=90,
            what="the deployment is ready",
        )
        assert ready["ready"] == 1
        eventually(
            lambda: researcher.get(f"requests/{asked['id']}/")["state"] == "fulfilled",
            within=10,
            what="the request is fulfilled",
        )
        key = researcher.post(f"projects/{project}/keys/", {"name": "flow"})["secret"]
        eventually(lambda: model in models(stack, key), within=10, what="the model is offered")
        pieces = stream(stack, key, model)
        assert len(pieces) > 3
        assert "".join(pieces)

        gone = researcher.call("DELETE", f"deployments/{deployment}/")
        assert gone.status_code in {200, 202, 204}, gone.text
        eventually(lambda: model not in models(stack, key), within=10, what="the model is no longer offered")
        eventually(
            lambda: researcher.get(f"deployments/{deployment}/")["archived_at"], within=90, what="the deployment is gone"
        )
        check_ledger(researcher, project, deployment, recorder)


def signed_in(chrome: Browser, stack: Stack, email: str) -> Page:
    """A window in which ``email`` has signed in by the form."""
    page = chrome.new_context(base_url=stack.web_url, viewport={"width": 1440, "height": 900}).new_page()
    page.goto("/accounts/login/")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(stack.password_file.read_text())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    return page


def test_main_job_in_the_browser(stack: Stack, admin: Api, chrome: Browser) -> None:
    """Two people, two windows, and not one reload: what changes shows by itself."""
    researcher, approver = signed_in(chrome, stack, RESEARCHER), signed_in(chrome, stack, APPROVER)
    rest = Rest(stack, RESEARCHER)
    project = rest.project("speech")
    model = f"talk-{secrets.token_hex(3)}"
    with Recorder(admin).recording() as recorder:
        researcher.get_by_test_id("ask").click()
        researcher.get_by_label("Model name").fill(model)
        researcher.get_by_label("Model files").fill("hf://north-lab/tiny-chat")
        researcher.get_by_label("GGUF file").fill("tiny.gguf")
        researcher.get_by_label("GPUs", exact=True).select_option("h100-80gb")
        expect(researcher.get_by_test_id("preview")).to_contain_text("no rate set", timeout=10_000)
        researcher.get_by_test_id("submit").click()
        expect(researcher.get_by_test_id("request-state")).to_have_text("submitted")

        approver.goto("/inbox/")
        approve = approver.get_by_role("button", name=re.compile(f"Approve .*{model}"))
        approve.click()
        expect(approve).to_have_count(0)

        researcher.get_by_test_id("made").click(timeout=10_000)
        expect(researcher.get_by_test_id("deployment-state")).to_have_text("ready", timeout=60_000)
        deployment = researcher.url.rstrip("/").rsplit("/", 1)[-1]
        expect(researcher.get_by_test_id("states")).to_contain_text("not measured here")
        expect(researcher.get_by_test_id("manifest").first).to_contain_text(deployment)

        researcher.goto(f"/projects/{project}/keys/")
        researcher.get_by_label("Name").fill("my laptop")
        researcher.get_by_role("button", name="Make the key").click()
        key = researcher.get_by_test_id("secret-value").inner_text()
        pieces = stream(stack, key, model)
        assert len(pieces) > 3

        researcher.goto(f"/deployments/{deployment}/")
        researcher.get_by_test_id("delete-open").click()
        researcher.get_by_label(f"Type {model} to delete it").fill(model)
        researcher.get_by_test_id("delete").click()
        expect(researcher.get_by_test_id("deployment-lead")).to_contain_text("removed", timeout=60_000)
        check_ledger(rest, project, deployment, recorder)

        researcher.goto(f"/projects/{project}/usage/")
        expect(researcher.get_by_test_id("usage-deployment")).to_contain_text(model)
    researcher.context.close()
    approver.context.close()
