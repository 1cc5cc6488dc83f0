"""The whole local fleet, stopped and started again on its own state, as `make run` does day after day."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import psutil
import pytest

from deploy.local.binaries import BuildStopped
from deploy.local.controlplane_api import Api
from deploy.local.fleet import LocalFleet
from tests.cluster import Json, condition, eventually, pod
from tests.deploy.test_agent import container, engines_at

POD = "/api/v1/namespaces/default/pods/p"


def ready_pod(api: Api) -> Json | None:
    found = api.get(POD)
    return found if found is not None and condition(found, "Ready") == "True" else None


@pytest.mark.cluster
def test_pods_are_served_again_after_a_stop_and_a_start(tmp_path: Path) -> None:
    told: list[str] = []
    fleet = LocalFleet(
        state=tmp_path / "state",
        credentials=tmp_path / "credentials",
        progress=lambda step, fraction: told.append(step),
        stopped=threading.Event(),
        fsync=False,
    )
    try:
        starter = threading.Thread(target=fleet.start)
        starter.start()
        starter.join()
        assert (tmp_path / "credentials" / "local.kubeconfig").exists()
        assert told == ["starting the Kubernetes control plane", "registering the demo fleet's nodes"]
        api = fleet.control_plane.api
        eventually(lambda: api.get("/api/v1/namespaces/default/serviceaccounts/default"))
        api.create(pod("default", "p"))
        first = eventually(lambda: ready_pod(api))
        # A part that ends by itself is back without anyone asking.
        assert fleet.agent is not None
        before = fleet.agent.pid
        assert before is not None
        psutil.Process(before).kill()
        eventually(lambda: fleet.agent is not None and fleet.agent.pid not in {None, before})
    finally:
        fleet.stop()
        fleet.stop()
    assert not engines_at(first["status"]["podIP"])
    fleet = LocalFleet(
        state=tmp_path / "state",
        credentials=tmp_path / "credentials",
        progress=lambda step, fraction: None,
        stopped=threading.Event(),
        fsync=False,
    )
    try:
        fleet.start()
        api = fleet.control_plane.api
        again = eventually(lambda: (now := ready_pod(api)) and container(now)["restartCount"] >= 1 and now)
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        assert again["status"]["podIP"] == first["status"]["podIP"]
        assert httpx.get(f"http://{again['status']['podIP']}:8080/health").status_code == 200
    finally:
        fleet.stop()


def test_a_fleet_stopped_before_it_starts_starts_nothing(tmp_path: Path) -> None:
    stopped = threading.Event()
    fleet = LocalFleet(state=tmp_path / "state", credentials=tmp_path, progress=lambda step, fraction: None, stopped=stopped)
    stopped.set()
    with pytest.raises(BuildStopped):
        fleet.start()
    fleet.stop()
    assert not (tmp_path / "state").exists()
