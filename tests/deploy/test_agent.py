"""The engine agent on the real cluster: Ready means that a server answers, and a pod ends as a kubelet ends it."""

from __future__ import annotations

from datetime import datetime

import httpx
import openai
import psutil
import pytest

from deploy.local.agent_pods import FINISH
from deploy.local.controlplane_api import Api
from tests.cluster import BATCH_IMAGE, Json, condition, eventually, pod

pytestmark = pytest.mark.cluster


def path_of(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def ready(admin: Api, namespace: str, name: str) -> Json:
    def look() -> Json | None:
        found = admin.get(path_of(namespace, name))
        return found if found is not None and condition(found, "Ready") == "True" else None

    return eventually(look, what=f"pod {name} is Ready")


def container(found: Json) -> Json:
    return dict(found["status"]["containerStatuses"][0])


def test_a_ready_pod_streams_tokens_to_the_openai_client(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p", args=("--alias", "llama-tiny")))
    found = ready(admin, namespace, "p")
    client = openai.OpenAI(base_url=f"http://{found['status']['podIP']}:8080/v1", api_key="none")
    assert [model.id for model in client.models.list()] == ["llama-tiny"]
    stream = client.chat.completions.create(
        model="llama-tiny",
        messages=[{"role": "user", "content": "hello"}],
        stream=True,
        max_tokens=7,
        extra_body={"ignore_eos": True},
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert sum(1 for chunk in chunks if chunk.choices and chunk.choices[0].delta.content) == 7
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 7


def test_deletion_waits_out_pre_stop_then_leaves_finished_at_and_a_terminal_phase(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p", grace=8, container={"lifecycle": {"preStop": {"sleep": {"seconds": 2}}}}))
    found = ready(admin, namespace, "p")
    url = f"http://{found['status']['podIP']}:8080/health"
    version = found["metadata"]["resourceVersion"]
    admin.delete(path_of(namespace, "p"))
    assert httpx.get(url).status_code == 200, "it still serves during preStop"
    events = []
    for event in admin.watch(f"/api/v1/namespaces/{namespace}/pods", seconds=15, resourceVersion=version):
        events.append(event)
        if event["type"] == "DELETED":
            break
    asked = datetime.fromisoformat(events[0]["object"]["metadata"]["deletionTimestamp"]).timestamp() - 8
    last = events[-1]["object"]
    assert last["status"]["phase"] == "Succeeded"
    ended = container(last)["state"]["terminated"]
    assert ended["exitCode"] == 0
    assert 2 <= datetime.fromisoformat(ended["finishedAt"]).timestamp() - asked <= 5
    assert [event["type"] for event in events[:-1]] == ["MODIFIED"] * (len(events) - 1)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_an_image_it_cannot_serve_stays_not_ready_and_says_why(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p", image="nginx:1.27"))

    def waiting() -> Json | None:
        found = admin.get(path_of(namespace, "p")) or {}
        states = [one["state"].get("waiting", {}) for one in found.get("status", {}).get("containerStatuses", [])]
        return found if [state.get("reason") for state in states] == ["ErrImagePull"] else None

    found = eventually(waiting)
    assert condition(found, "Ready") == "False"
    assert "nothing on this machine serves the image nginx:1.27" in container(found)["state"]["waiting"]["message"]
    admin.delete(path_of(namespace, "p"))
    eventually(lambda: admin.get(path_of(namespace, "p")) is None, within=5, what="it goes at once: nothing ran")


def test_a_server_that_dies_makes_the_pod_unready_and_is_restarted(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p"))
    found = ready(admin, namespace, "p")
    from_agent = eventually(lambda: engines_at(found["status"]["podIP"]))
    for process in from_agent:
        process.kill()
    crashed = eventually(lambda: (now := admin.get(path_of(namespace, "p"))) and container(now)["restartCount"] == 1 and now)
    assert container(crashed)["lastState"]["terminated"]["exitCode"] == 137
    assert container(ready(admin, namespace, "p"))["restartCount"] == 1


def test_a_force_deleted_pod_takes_its_server_along(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p"))
    found = ready(admin, namespace, "p")
    admin.delete(path_of(namespace, "p"), grace=0)
    assert admin.get(path_of(namespace, "p")) is None
    eventually(lambda: not engines_at(found["status"]["podIP"]), within=5)


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_batch_pod_ends_when_told(admin: Api, namespace: str, phase: str, code: int) -> None:
    admin.create(pod(namespace, "p", image=BATCH_IMAGE, restartPolicy="Never"))
    ready(admin, namespace, "p")
    admin.patch(path_of(namespace, "p"), {"metadata": {"annotations": {FINISH: phase}}})
    found = eventually(lambda: (now := admin.get(path_of(namespace, "p"))) and now["status"]["phase"] == phase and now)
    assert container(found)["state"]["terminated"]["exitCode"] == code
    assert container(found)["state"]["terminated"]["finishedAt"]


def engines_at(address: str) -> list[psutil.Process]:
    """The engine processes that were started for ``address``."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if "deploy.local.engine" in (process.info["cmdline"] or []) and address in process.info["cmdline"]
    ]
