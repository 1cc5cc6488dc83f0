"""The whole of Slipway under faults: after each, rows and cluster agree again without a hand, and nothing counts double."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable

import pytest
import redis

from deploy.local.controlplane_api import Api
from deploy.local.stack import Stack
from tests.flows.pods import Recorder
from tests.flows.rest import Rest
from tests.flows.test_main_job import APPROVER, RESEARCHER, check_ledger
from tests.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def people(stack: Stack) -> tuple[Rest, Rest]:
    return Rest(stack, RESEARCHER), Rest(stack, APPROVER)


def empty_valkey(stack: Stack, admin: Api) -> None:
    """Hints, sessions' cache and the queue are gone."""
    redis.Redis(port=stack.valkey.port).flushall()


def kill_worker(stack: Stack, admin: Api) -> None:
    """SIGKILL to the worker and its children; the supervisor starts it again."""
    os.killpg(stack.supervisor.pids()["worker"], signal.SIGKILL)


def kill_observer(stack: Stack, admin: Api) -> None:
    """SIGKILL to the observer, which holds the cluster's advisory lock."""
    os.killpg(stack.supervisor.pids()["observer"], signal.SIGKILL)


def second_beat(stack: Stack, admin: Api) -> None:
    """Another beat and another worker beside the first."""
    stack.start("beat", "worker")


def delete_namespace(stack: Stack, admin: Api) -> None:
    """Somebody deletes the project's namespace by hand."""
    for namespace in admin.items("v1", "Namespace"):
        if namespace["metadata"].get("labels", {}).get("slipway/managed") == "true":
            admin.delete(f"/api/v1/namespaces/{namespace['metadata']['name']}")


@pytest.mark.parametrize("fault", [empty_valkey, kill_worker, kill_observer, second_beat, delete_namespace])
def test_an_approval_survives(
    fault: Callable[[Stack, Api], None], stack: Stack, admin: Api, people: tuple[Rest, Rest]
) -> None:
    researcher, approver = people
    project = researcher.project("speech")
    payload = {
        "name": f"chaos-{secrets.token_hex(3)}",
        "profile": "h100-80gb",
        "source": "hf://north-lab/tiny-chat",
        "source_file": "tiny.gguf",
    }
    with Recorder(admin).recording() as recorder:
        asked = researcher.post("requests/", {"project": project, "kind": "deployment", "payload": payload})
        deployment = approver.post(f"requests/{asked['id']}/decide/", {"verdict": "approve"})["made_id"]
        fault(stack, admin)

        def is_ready() -> bool:
            stack.supervisor.tend()
            found = researcher.get(f"deployments/{deployment}/")
            return found["phase"] == "ready" and found["ready"] == 1

        eventually(is_ready, within=120, what="the deployment is ready")
        ours = [
            found
            for found in admin.items("apps/v1", "Deployment")
            if found["metadata"].get("labels", {}).get("slipway/id") == deployment
        ]
        assert len(ours) == 1

        assert researcher.call("DELETE", f"deployments/{deployment}/").is_success

        def is_gone() -> bool:
            stack.supervisor.tend()
            return bool(researcher.get(f"deployments/{deployment}/")["archived_at"])

        eventually(is_gone, within=120, what="the deployment is gone")
        if fault is not delete_namespace:
            check_ledger(researcher, project, deployment, recorder)
        intervals = researcher.get(f"projects/{project}/intervals/", deployment=deployment)["results"]
        assert len({one["pod_uid"] for one in intervals}) == len(intervals)
    grants = researcher.get(f"projects/{project}/grants/")["results"]
    assert next(one for one in grants if one["grant"]["profile"]["name"] == "h100-80gb")["held"] == 0
