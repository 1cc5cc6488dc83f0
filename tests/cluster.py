"""The real cluster for tests: control plane, kwok, the demo fleet's nodes and the engine agent, once per test session.

Ask for ``admin`` (or ``cluster_credential``, ``namespace``) and the cluster is there; after each such test its workloads are
removed and the nodes are as fleet.yaml says again. ``control_plane`` and ``engine_agent`` are the handles for faults.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest

from deploy.local import fleet_crds
from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Api
from deploy.local.controlplane_process import Daemon
from deploy.local.fleet import LocalFleet
from deploy.local.fleet_nodes import nodes_of, set_nodes
from deploy.local.state import state_dir

pytest_plugins = ["tests.cluster_faults"]

Json = dict[str, Any]
T = TypeVar("T")

_OWN_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease", "slipway-system"}
H100_SELECTOR = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
H100_TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
ENGINE_IMAGE = "registry.invalid/llamacpp-cuda@sha256:" + "a" * 64
BATCH_IMAGE = "registry.invalid/batch@sha256:" + "b" * 64


def eventually(look: Callable[[], T], *, within: float = 30, what: str = "") -> T:
    """The first true answer of ``look``, asked every 50 ms; fails the test after ``within`` seconds.

    An error answer or a refused connection counts as "not yet".
    """
    deadline = time.monotonic() + within
    last: object = None
    while time.monotonic() < deadline:
        try:
            last = answer = look()
        except httpx.HTTPError as error:
            last = error
        else:
            if answer:
                return answer
        threading.Event().wait(0.05)
    pytest.fail(f"not within {within:.0f} s: {what or look.__name__}; last answer: {last!r}")


def condition(thing: Json, kind: str) -> str:
    """The status of a condition, "" when it is not there."""
    conditions = thing.get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def pod(
    namespace: str,
    name: str,
    *,
    image: str = ENGINE_IMAGE,
    devices: int = 1,
    args: tuple[str, ...] = ("--alias", "tiny"),
    grace: int = 5,
    **spec: Any,
) -> Json:
    """A pod for the H100 nodes whose container serves on its port ``http`` (8080)."""
    container: Json = {
        "name": "engine",
        "image": image,
        "args": list(args),
        "ports": [{"name": "http", "containerPort": 8080}],
    }
    if devices:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(devices)}}
    container.update(spec.pop("container", {}))
    body = {
        "nodeSelector": H100_SELECTOR,
        "tolerations": H100_TOLERATIONS,
        "terminationGracePeriodSeconds": grace,
        "containers": [container],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": body}


@pytest.fixture(scope="session")
def local_fleet() -> Iterator[LocalFleet]:
    """Everything, started; most tests want ``admin`` instead."""
    folder = state_dir() / "test"
    for left in folder.glob("cluster-*"):
        # Of a session that was killed, or of an earlier process with this one's number.
        if left.name.removeprefix("cluster-") == str(os.getpid()) or not psutil.pid_exists(
            int(left.name.removeprefix("cluster-"))
        ):
            shutil.rmtree(left, ignore_errors=True)
    state = folder / f"cluster-{os.getpid()}"

    def progress(step: str, fraction: float | None) -> None:
        """The build's progress is `make test`'s business (deploy.local.prepare)."""

    fleet = LocalFleet(
        state=state, credentials=state / "credentials", progress=progress, stopped=threading.Event(), fsync=False
    )
    fleet.tended = False
    try:
        fleet.start()
        plane = fleet.control_plane
        eventually(
            lambda: all(condition(node, "Ready") == "True" for node in plane.api.items("v1", "Node")),
            what="all nodes are Ready",
        )
        yield fleet
    finally:
        fleet.stop()
        shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="session")
def control_plane(local_fleet: LocalFleet) -> ControlPlane:
    """The control plane; with it come kwok, the nodes and the engine agent. A test that breaks it puts it right again."""
    return local_fleet.control_plane


@pytest.fixture(scope="session")
def engine_agent(local_fleet: LocalFleet) -> Daemon:
    """The engine agent's process, to stop, kill, freeze and start."""
    assert local_fleet.agent is not None
    return local_fleet.agent


@pytest.fixture(scope="session")
def kwok(local_fleet: LocalFleet) -> Daemon:
    assert local_fleet.kwok is not None
    return local_fleet.kwok


@pytest.fixture
def admin(local_fleet: LocalFleet) -> Iterator[Api]:
    """Calls as cluster administrator; what the test made is removed after it."""
    api = local_fleet.control_plane.api
    yield api
    mend(local_fleet)
    sweep(api)


@pytest.fixture
def namespace(admin: Api) -> str:
    """A fresh namespace in which pods can be made."""
    name = f"test-{secrets.token_hex(4)}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    eventually(lambda: admin.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), what="it has its default account")
    return name


@pytest.fixture
def cluster_credential(
    local_fleet: LocalFleet, admin: Api, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> str:
    """The credential's name, for Cluster.credential: the portal's own account, in this process and in what it starts."""
    local_fleet.control_plane.write_credential(tmp_path, "local")
    settings.CLUSTER_CREDENTIALS_DIR = tmp_path
    monkeypatch.setenv("SLIPWAY_CLUSTER_CREDENTIALS_DIR", str(tmp_path))
    return "local"


@pytest.fixture
def flexinfer_crd(admin: Api) -> Iterator[Path]:
    """FlexInfer's Model definition, installed for this test; the file it came from."""
    path = fleet_crds.definition("flexinfer", "ai.flexinfer_models.yaml")
    names = fleet_crds.install(admin, path)
    yield path
    fleet_crds.remove(admin, names)


def mend(fleet: LocalFleet) -> None:
    """Start again whatever a test stopped, and what would only slowly notice that it is back."""
    stopped = fleet.control_plane.mend()
    assert fleet.kwok is not None
    assert fleet.agent is not None
    if stopped:
        fleet.kwok.kill()
    fleet.kwok.start()
    fleet.agent.start()


def sweep(api: Api) -> None:
    """Remove workloads and namespaces of tests without waiting for graces, and put the nodes right."""
    for kind in ("Deployment", "ReplicaSet"):
        for thing in api.items("apps/v1", kind):
            meta = thing["metadata"]
            api.delete(f"/apis/apps/v1/namespaces/{meta['namespace']}/{kind.lower()}s/{meta['name']}")
    for thing in api.items("v1", "Pod"):
        meta = thing["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta.get("finalizers"):
            api.patch(path, {"metadata": {"finalizers": None}})
        api.delete(path, grace=0)
    for thing in api.items("v1", "Namespace"):
        name = thing["metadata"]["name"]
        if name not in _OWN_NAMESPACES and "deletionTimestamp" not in thing["metadata"]:
            api.delete(f"/api/v1/namespaces/{name}")
    set_nodes(api, nodes_of())
