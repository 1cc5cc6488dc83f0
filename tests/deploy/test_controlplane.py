"""The control plane: comes back on its port, keeps its data, gives the portal only its rights, dies with its parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Api, Kubeconfig, collection_path, object_path
from deploy.local.controlplane_process import Daemon
from deploy.local.kwok import PodNetwork
from deploy.local.state import CHECKOUT
from tests.cluster import eventually

cluster = pytest.mark.cluster


@cluster
def test_a_killed_api_server_comes_back_on_the_same_port_with_the_same_data(
    admin: Api, namespace: str, control_plane: ControlPlane
) -> None:
    url = control_plane.url
    control_plane.kill_apiserver()
    with pytest.raises(httpx.TransportError):
        admin.get("/readyz")
    control_plane.start_apiserver()
    assert control_plane.url == url
    assert admin.get(f"/api/v1/namespaces/{namespace}") is not None


@cluster
def test_a_frozen_api_server_is_woken_by_mend(admin: Api, control_plane: ControlPlane) -> None:
    control_plane.daemon("kube-apiserver").send(signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        admin.http.get("/api/v1/namespaces", timeout=0.3)
    control_plane.mend()
    assert admin.get("/version")["gitVersion"].startswith("v1.37")


@cluster
def test_heal_starts_what_ended_by_itself(admin: Api, control_plane: ControlPlane) -> None:
    scheduler = control_plane.daemon("kube-scheduler")
    before = scheduler.pid
    assert before is not None
    psutil.Process(before).kill()
    eventually(lambda: not scheduler.running)
    assert control_plane.heal() == ["kube-scheduler"]
    assert scheduler.pid != before


@cluster
def test_the_portals_credential_may_do_its_work_and_no_more(
    admin: Api, namespace: str, control_plane: ControlPlane, tmp_path: Path
) -> None:
    path = control_plane.write_credential(tmp_path, "local")
    assert path.stat().st_mode & 0o077 == 0
    portal = Api(path)
    try:
        assert portal.items("v1", "Node")
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": namespace},
            "spec": {"hard": {"pods": "1"}},
        }
        portal.apply(quota, manager="slipway")
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "slipway:prj_x"}],
        }
        portal.apply(binding, manager="slipway")
        for forbidden in (
            lambda: portal.items("v1", "Secret"),
            lambda: portal.apply(
                {
                    **binding,
                    "metadata": {"name": "c", "namespace": namespace},
                    "roleRef": {**binding["roleRef"], "name": "cluster-admin"},
                }
            ),
            lambda: portal.delete("/api/v1/nodes/h100-1"),
            lambda: portal.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": {}}
            ),
        ):
            with pytest.raises(httpx.HTTPStatusError, match=" 403 "):
                forbidden()
    finally:
        portal.close()


@cluster
def test_it_starts_again_on_what_an_earlier_run_left(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    try:
        plane.start()
        plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
        plane.stop()
        plane.stop()
        again = plane = ControlPlane(tmp_path)
        again.start()
        assert again.api.get("/api/v1/namespaces/kept") is not None
        assert again.heal() == []
    finally:
        plane.stop()


@cluster
def test_a_part_that_does_not_start_is_named_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "etcd").write_text("not a folder")
    plane = ControlPlane(tmp_path)
    try:
        with pytest.raises(RuntimeError, match=r"etcd ended; its log .*etcd\.log closes with"):
            plane.start()
    finally:
        plane.stop()


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, threading, pathlib\n"
        "from deploy.local.controlplane_process import Daemon\n"
        "daemon = Daemon('sleeper', ['sleep', '300'], log=pathlib.Path(sys.argv[1]))\n"
        "starter = threading.Thread(target=daemon.start)\n"
        "starter.start(); starter.join()\n"
        "print(daemon.pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log")],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running(), "it outlives the thread that started it"
    parent.kill()
    parent.wait()
    gone, _ = psutil.wait_procs([child], timeout=10)
    assert gone == [child]


def test_a_daemon_starts_once_stops_and_starts_again(tmp_path: Path) -> None:
    daemon = Daemon("sleeper", ["sleep", "300"], log=tmp_path / "log")
    daemon.start()
    pid = daemon.pid
    daemon.start()
    assert daemon.pid == pid
    daemon.send(signal.SIGSTOP)
    began = time.monotonic()
    daemon.stop()
    assert time.monotonic() - began < 5, "a frozen process is woken so that it can end"
    assert (daemon.running, daemon.pid) == (False, None)
    daemon.start()
    assert daemon.running
    daemon.kill()
    assert not daemon.running


def test_a_daemon_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    daemon = Daemon("stubborn", ["sh", "-c", "trap '' TERM; echo on; while :; do sleep 1; done"], log=tmp_path / "log")
    daemon.start()
    eventually(lambda: "on" in daemon.tail())
    daemon.stop(within=0.2)
    assert not daemon.running


def test_two_fleets_never_share_a_pod_network(tmp_path: Path) -> None:
    first, second = PodNetwork(tmp_path / "a"), PodNetwork(tmp_path / "b")
    try:
        assert first.claim() != second.claim()
        assert first.claim() == first.cidr
        kept = first.cidr
        first.release()
        assert PodNetwork(tmp_path / "a").claim() == kept, "pods kept in etcd find their addresses again"
    finally:
        first.release()
        second.release()


def test_a_kubeconfig_survives_writing_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "local.kubeconfig"
    written = Kubeconfig(server="https://127.0.0.1:1", authority="-----BEGIN CERTIFICATE-----\n", token="t")
    written.write(path)
    assert Kubeconfig.read(path) == written
    assert yaml.safe_load(path.read_text())["current-context"] == "local"
    assert [entry.name for entry in path.parent.iterdir()] == ["local.kubeconfig"]


def test_a_reader_never_sees_half_a_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "local.kubeconfig"
    config = Kubeconfig(server="https://127.0.0.1:1", authority="x" * 4000, token="t" * 4000)
    config.write(path)
    done = threading.Event()
    writer = threading.Thread(target=lambda: [config.write(path) for _ in range(50)] and done.set())
    writer.start()
    while not done.is_set():
        assert Kubeconfig.read(path) == config
    writer.join()


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, "/api/v1/namespaces/n"),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}},
            "/apis/apps/v1/namespaces/n/deployments/d",
        ),
        (
            {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "n"}},
            "/apis/networking.k8s.io/v1/namespaces/n/networkpolicies/p",
        ),
    ],
)
def test_object_paths(manifest: dict, path: str) -> None:
    assert object_path(manifest) == path
    assert path.startswith(
        collection_path(manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("namespace", ""))
    )
