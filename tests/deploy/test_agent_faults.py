"""The engine agent through restarts, a lost API server, full places and graces that run out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Api
from deploy.local.controlplane_process import Daemon
from deploy.local.fleet import engine_agent as agent_process
from deploy.local.fleet_nodes import FLEET_FILE
from tests.cluster import Json, condition, eventually, pod
from tests.deploy.test_agent import container, engines_at, path_of, ready

pytestmark = [pytest.mark.cluster, pytest.mark.chaos]


def deleted(admin: Api, namespace: str, name: str, *, after: str) -> Json:
    """The pod as it was when it went; watched from the version ``after``."""
    for event in admin.watch(f"/api/v1/namespaces/{namespace}/pods", seconds=20, resourceVersion=after):
        if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
            return dict(event["object"])
    pytest.fail(f"pod {name} was not deleted")


def test_a_killed_agent_leaves_no_engine_and_the_next_one_restarts_the_pod(
    admin: Api, namespace: str, engine_agent: Daemon
) -> None:
    admin.create(pod(namespace, "p"))
    found = ready(admin, namespace, "p")
    first = engines_at(found["status"]["podIP"])
    assert len(first) == 1
    engine_agent.kill()
    psutil.wait_procs(first, timeout=5)
    assert not engines_at(found["status"]["podIP"])
    engine_agent.start()

    def restarted() -> Json | None:
        now = admin.get(path_of(namespace, "p"))
        return now if now and container(now)["restartCount"] == 1 and condition(now, "Ready") == "True" else None

    again = eventually(restarted)
    assert again["status"]["podIP"] == found["status"]["podIP"]
    assert httpx.get(f"http://{again['status']['podIP']}:8080/health").status_code == 200


def test_a_pod_deleted_while_the_agent_is_down_ends_when_it_is_back(
    admin: Api, namespace: str, engine_agent: Daemon
) -> None:
    admin.create(pod(namespace, "p", grace=3))
    found = ready(admin, namespace, "p")
    engine_agent.kill()
    admin.delete(path_of(namespace, "p"))
    assert admin.get(path_of(namespace, "p")) is not None, "nobody says that its process ended"
    engine_agent.start()
    last = deleted(admin, namespace, "p", after=found["metadata"]["resourceVersion"])
    assert last["status"]["phase"] == "Failed"
    assert container(last)["state"]["terminated"]["finishedAt"]
    assert container(last)["state"]["terminated"]["exitCode"] == 137


def test_a_deletion_survives_a_restart_of_the_api_server(admin: Api, namespace: str, control_plane: ControlPlane) -> None:
    admin.create(pod(namespace, "p", grace=30, container={"lifecycle": {"preStop": {"sleep": {"seconds": 8}}}}))
    found = ready(admin, namespace, "p")
    admin.delete(path_of(namespace, "p"))
    control_plane.kill_apiserver()
    control_plane.mend()
    going = admin.get(path_of(namespace, "p"))
    assert going is not None, "it still waits out its preStop"
    last = deleted(admin, namespace, "p", after=going["metadata"]["resourceVersion"])
    assert last["status"]["phase"] == "Succeeded"
    assert not engines_at(found["status"]["podIP"])


def test_an_engine_that_does_not_end_in_its_grace_is_killed_and_the_pod_failed(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p", grace=2))
    found = ready(admin, namespace, "p")
    (engine,) = engines_at(found["status"]["podIP"])
    engine.send_signal(signal.SIGSTOP)
    admin.delete(path_of(namespace, "p"))
    last = deleted(admin, namespace, "p", after=found["metadata"]["resourceVersion"])
    assert last["status"]["phase"] == "Failed"
    assert container(last)["state"]["terminated"]["exitCode"] == 137


def test_a_server_that_hangs_is_not_ready_until_it_answers_again(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p"))
    found = ready(admin, namespace, "p")
    (engine,) = engines_at(found["status"]["podIP"])
    engine.send_signal(signal.SIGSTOP)
    hung = eventually(lambda: (now := admin.get(path_of(namespace, "p"))) and condition(now, "Ready") == "False" and now)
    assert "running" in container(hung)["state"]
    assert container(hung)["restartCount"] == 0
    engine.send_signal(signal.SIGCONT)
    assert container(ready(admin, namespace, "p"))["restartCount"] == 0


def test_requests_in_flight_end_whole_when_their_pod_is_deleted(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "p", grace=30))
    found = ready(admin, namespace, "p")
    url = f"http://{found['status']['podIP']}:8080/v1/completions"
    # More of them than the engine has slots, so that some still wait when it is told to end.
    answers: list[httpx.Response] = []
    begun = threading.Barrier(9)

    def ask() -> None:
        with httpx.stream(
            "POST", url, json={"prompt": "go", "max_tokens": 700, "stream": True, "ignore_eos": True}, timeout=60
        ) as answer:
            begun.wait()
            answer.read()
            answers.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    begun.wait(timeout=30)
    admin.delete(path_of(namespace, "p"))
    for thread in threads:
        thread.join()
    assert [answer.text.rstrip().endswith("data: [DONE]") for answer in answers] == [True] * 8
    last = deleted(admin, namespace, "p", after=found["metadata"]["resourceVersion"])
    assert container(last)["state"]["terminated"]["exitCode"] == 0


def test_a_killed_kwok_goes_on_at_once_when_it_is_back(admin: Api, namespace: str, kwok: Daemon) -> None:
    kwok.kill()
    admin.create(pod(namespace, "p"))
    eventually(lambda: (admin.get(path_of(namespace, "p")) or {}).get("spec", {}).get("nodeName"))
    assert "podIP" not in admin.get(path_of(namespace, "p"))["status"]
    kwok.start()
    ready(admin, namespace, "p")


@pytest.fixture
def one_engine(engine_agent: Daemon, control_plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """An agent with a single place instead of the usual one."""
    fleet = yaml.safe_load(FLEET_FILE.read_text())
    fleet["engines"]["limit"] = 1
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    engine_agent.stop()
    other = agent_process(
        kubeconfig=control_plane.admin_kubeconfig, work=tmp_path, logs=tmp_path, fleet=tmp_path / "fleet.yaml"
    )
    other.start()
    yield
    other.stop()
    engine_agent.start()


@pytest.mark.usefixtures("one_engine")
def test_a_pod_beyond_the_limit_says_so_and_gets_the_next_free_place(admin: Api, namespace: str) -> None:
    admin.create(pod(namespace, "first"))
    ready(admin, namespace, "first")
    admin.create(pod(namespace, "second"))

    def told() -> str:
        states = (admin.get(path_of(namespace, "second")) or {}).get("status", {}).get("containerStatuses", [])
        return "".join(state["state"].get("waiting", {}).get("message", "") for state in states)

    assert "at most 1 engines" in eventually(told)
    admin.delete(path_of(namespace, "first"))
    ready(admin, namespace, "second")


def test_forty_pods_share_sixteen_places_and_leave_nothing_behind(admin: Api, namespace: str) -> None:
    for number in range(40):
        admin.create(pod(namespace, f"p{number}", devices=0, grace=1))

    def serving() -> list[Json]:
        return [one for one in admin.items("v1", "Pod", namespace) if condition(one, "Ready") == "True"]

    eventually(lambda: len(serving()) == 16, within=60)
    addresses = [one["status"]["podIP"] for one in serving()]
    assert len(set(addresses)) == 16
    admin.http.request("DELETE", f"/api/v1/namespaces/{namespace}/pods")
    eventually(lambda: admin.items("v1", "Pod", namespace) == [], within=60)
    assert not [process for address in addresses for process in engines_at(address)]
