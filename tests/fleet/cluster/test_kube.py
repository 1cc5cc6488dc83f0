"""What only a wire can show: pages, half answers, cut watches, silence, and credentials that rotate."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.controlplane_api import Kubeconfig
from fleet.cluster import (
    BadLine,
    Gone,
    NotInstalled,
    ObjectRef,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    WatchEvent,
    connect,
)
from fleet.cluster.kube import KubeCluster

CORE = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list", "watch"]},
        {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
    ],
}


class Script(ThreadingHTTPServer):
    """Answers in the order given for a path prefix; the last one stays. ``asked`` logs path and Authorization."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, list[tuple[int, bytes, dict[str, str]]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.token = ""
        self.say("/api/v1?", 200, CORE)

    def say(self, prefix: str, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.setdefault(prefix, []).append((status, raw, headers or {}))

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        for prefix in sorted(self.answers, key=len, reverse=True):
            if path.startswith(prefix):
                queue = self.answers[prefix]
                return queue.pop(0) if len(queue) > 1 else queue[0]
        return 404, b"404 page not found", {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Script

    def do_GET(self) -> None:
        path = self.path if "?" in self.path else f"{self.path}?"
        sent = self.headers.get("Authorization", "")
        self.server.asked.append((path, sent))
        status, body, headers = self.server.answer(path)
        if self.server.token and sent != f"Bearer {self.server.token}":
            status, body, headers = 401, b'{"kind":"Status","code":401,"message":"Unauthorized"}', {}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Transfer-Encoding" in headers:
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
            self.close_connection = True
            return
        length = headers.get("X-Promised-Length", str(len(body)))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)
        if length != str(len(body)):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Script]:
    server = Script()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def write_kubeconfig(path: Path, address: str, user: dict[str, Any]) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": address}}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def cluster(server: Script, tmp_path: Path) -> KubeCluster:
    path = write_kubeconfig(tmp_path / "x.kubeconfig", f"http://127.0.0.1:{server.server_port}", {"token": "t"})
    return KubeCluster(path)


def page(names: str, *, then: str = "", version: str = "900") -> dict[str, Any]:
    items = [{"metadata": {"name": name, "uid": name, "resourceVersion": "5"}} for name in names]
    return {"kind": "PodList", "metadata": {"resourceVersion": version, "continue": then}, "items": items}


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": "y"}, "message": "expired"}


def names(items: list[dict[str, Any]]) -> str:
    return "".join(item["metadata"]["name"] for item in items)


def test_c18_pages_are_followed(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods?limit=2", 200, page("ab", then="x"))
    server.say("/api/v1/pods?limit=2&continue=x", 200, page("cd", then="y"))
    server.say("/api/v1/pods?limit=2&continue=y", 200, page("e"))
    listing = cluster.list_all("v1", "Pod", limit=2)
    assert (names(listing.items), listing.resource_version) == ("abcde", "900")


def test_c18_a_page_that_expired_starts_the_list_anew(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods?limit=2", 200, page("ab", then="x"))
    server.say("/api/v1/pods?limit=2", 200, page("ab", then="z", version="950"))
    server.say("/api/v1/pods?limit=2&continue=x", 410, EXPIRED)
    server.say("/api/v1/pods?limit=2&continue=z", 200, page("c", version="950"))
    listing = cluster.list_all("v1", "Pod", limit=2)
    assert (names(listing.items), listing.resource_version) == ("abc", "950")


def test_c18_a_list_that_never_finishes_is_an_error_and_not_a_part(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods?limit=2", 200, page("ab", then="x"))
    server.say("/api/v1/pods?limit=2&continue=x", 410, EXPIRED)
    with pytest.raises(Gone):
        cluster.list_all("v1", "Pod", limit=2)
    assert len([path for path, _ in server.asked if "continue" in path]) == 3


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_c18_a_page_that_fails_fails_the_list(server: Script, cluster: KubeCluster, code: int) -> None:
    server.say("/api/v1/pods?limit=2", 200, page("ab", then="x"))
    server.say("/api/v1/pods?limit=2&continue=x", code, b"upstream")
    with pytest.raises(Unreachable):
        cluster.list_all("v1", "Pod", limit=2)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"kind":"PodList","items":[', {}),
        (b"", {}),
        (b"[]", {}),
        (b"<html>sign in</html>", {}),
        ({"kind": "Status", "status": "Success"}, {}),
        ({"kind": "PodList", "items": []}, {}),
        (b'{"kind":"PodList"', {"X-Promised-Length": "5000"}),
    ],
)
def test_d3_an_answer_that_is_no_list_is_not_an_empty_one(
    server: Script, cluster: KubeCluster, body: Any, headers: dict[str, str]
) -> None:
    server.say("/api/v1/pods", 200, body, headers)
    with pytest.raises(Unreachable):
        cluster.list_all("v1", "Pod")


def test_null_items_are_none(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods", 200, {"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": None})
    assert cluster.list_all("v1", "Pod").items == []


def test_429_says_when(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods", 429, {"kind": "Status", "code": 429, "message": "slow"}, {"Retry-After": "9"})
    with pytest.raises(TooManyRequests) as caught:
        cluster.list_all("v1", "Pod")
    assert caught.value.retry_after == 9


def lines(*events: Any) -> bytes:
    return b"".join((event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n" for event in events)


def event(kind: str, name: str, version: str) -> dict[str, Any]:
    return {"type": kind, "object": {"metadata": {"name": name, "uid": name, "resourceVersion": version}}}


def test_c17_a_watch_yields_events_and_bad_lines(server: Script, cluster: KubeCluster) -> None:
    body = lines(event("ADDED", "p", "10"), b'{"type":"DELETED","obj', b"", event("MODIFIED", "q", "78")) + b'{"type":"DEL'
    server.say("/api/v1/pods", 200, body)
    seen = list(cluster.watch("v1", "Pod", resource_version="9", timeout_s=5))
    assert [type(item) for item in seen] == [WatchEvent, BadLine, BadLine, WatchEvent, BadLine]
    path, _ = server.asked[-1]
    assert "resourceVersion=9&" in path
    assert "allowWatchBookmarks=true" in path


def test_c16_a_watch_that_expired_is_gone_by_line_and_by_status(server: Script, cluster: KubeCluster) -> None:
    server.say("/api/v1/pods", 200, lines(event("ADDED", "c", "901"), {"type": "ERROR", "object": EXPIRED}))
    server.say("/api/v1/pods", 410, EXPIRED)
    seen = []
    with pytest.raises(Gone):
        seen.extend(cluster.watch("v1", "Pod", resource_version="900", timeout_s=5))
    with pytest.raises(Gone):
        list(cluster.watch("v1", "Pod", resource_version="900", timeout_s=5))


@pytest.mark.parametrize("headers", [{"X-Promised-Length": "5000"}, {"Transfer-Encoding": "chunked"}])
def test_a_watch_that_is_cut_is_no_silent_end(server: Script, cluster: KubeCluster, headers: dict[str, str]) -> None:
    server.say("/api/v1/pods", 200, lines(event("ADDED", "p", "10")), headers)
    seen: list[object] = []
    with pytest.raises(Unreachable):
        seen.extend(cluster.watch("v1", "Pod", resource_version="9", timeout_s=5))
    assert len(seen) >= 1


def test_a_kind_installed_later_is_found(server: Script, cluster: KubeCluster) -> None:
    with pytest.raises(NotInstalled):
        cluster.list_all("ray.io/v1", "RayJob")
    served = {
        "kind": "APIResourceList",
        "resources": [{"name": "rayjobs", "kind": "RayJob", "namespaced": True, "verbs": []}],
    }
    server.say("/apis/ray.io/v1?", 200, served)
    server.say("/apis/ray.io/v1/rayjobs", 200, {**page("a"), "kind": "RayJobList"})
    assert names(cluster.list_all("ray.io/v1", "RayJob").items) == "a"


def test_a_kind_removed_meanwhile_is_not_an_absent_object(server: Script, cluster: KubeCluster) -> None:
    cluster_ref = ObjectRef("v1", "Pod", "n", "p")
    gone = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "p", "kind": "pods"}}
    server.say("/api/v1/namespaces/n/pods/p", 404, gone)
    server.say("/api/v1/namespaces/n/pods/p", 404, b"404 page not found")
    assert cluster.get(cluster_ref) is None
    with pytest.raises(NotInstalled):
        cluster.get(cluster_ref)


def test_names_cannot_leave_their_place_in_the_path(server: Script, cluster: KubeCluster) -> None:
    with pytest.raises(NotInstalled):
        cluster.get(ObjectRef("v1", "Pod", "n", "../../secrets/x?y=z"))
    assert server.asked[-1][0] == "/api/v1/namespaces/n/pods/..%2F..%2Fsecrets%2Fx%3Fy%3Dz?"


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        cluster = KubeCluster(write_kubeconfig(tmp_path / "x.kubeconfig", address, {}))
        with pytest.raises(Unreachable):
            cluster.version()


@pytest.mark.parametrize(
    "text", ["", "not: [yaml", "apiVersion: v1\nkind: Config\n", "current-context: nothing\ncontexts: []\n"]
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.kubeconfig"
    path.write_text(text)
    with pytest.raises(Unreachable):
        KubeCluster(path).version()


def test_c19_a_rotated_token_file_is_read_again_once(server: Script, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("T1")
    address = f"http://127.0.0.1:{server.server_port}"
    cluster = KubeCluster(write_kubeconfig(tmp_path / "x.kubeconfig", address, {"tokenFile": str(token)}))
    server.say("/api/v1/pods", 200, page("ab"))
    server.token = "T1"
    assert names(cluster.list_all("v1", "Pod").items) == "ab"
    server.token = "T2"
    server.asked.clear()
    with pytest.raises(Unauthorized):
        cluster.list_all("v1", "Pod")
    assert [sent for _, sent in server.asked] == ["Bearer T1", "Bearer T1"]
    token.write_text("T2")
    server.asked.clear()
    assert names(cluster.list_all("v1", "Pod").items) == "ab"
    assert names(cluster.list_all("v1", "Pod").items) == "ab"
    assert [sent for _, sent in server.asked] == ["Bearer T1", "Bearer T2", "Bearer T2"]


def test_c19_a_watch_with_a_rotated_token_goes_on(server: Script, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("T1")
    address = f"http://127.0.0.1:{server.server_port}"
    cluster = KubeCluster(write_kubeconfig(tmp_path / "x.kubeconfig", address, {"tokenFile": str(token)}))
    server.token = "T1"
    server.say("/api/v1/pods", 200, lines(event("ADDED", "p", "10")))
    assert len(list(cluster.watch("v1", "Pod", resource_version="9", timeout_s=5))) == 1
    server.token = "T2"
    token.write_text("T2")
    assert len(list(cluster.watch("v1", "Pod", resource_version="9", timeout_s=5))) == 1


@pytest.mark.cluster
def test_c19_on_a_real_cluster(control_plane: Any, tmp_path: Path) -> None:
    admin = Kubeconfig.read(control_plane.admin_kubeconfig)
    token = tmp_path / "token"
    token.write_text("not-a-token")
    content = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    content["users"][0]["user"] = {"tokenFile": str(token)}
    path = tmp_path / "x.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    cluster = KubeCluster(path)
    with pytest.raises(Unauthorized):
        cluster.list_all("v1", "Node")
    token.write_text(admin.token)
    assert cluster.list_all("v1", "Node").items


def test_connect_follows_the_file(server: Script, tmp_path: Path, settings: Any) -> None:
    settings.CLUSTER_CREDENTIALS_DIR = tmp_path
    with pytest.raises(Unreachable):
        connect("later")
    address = f"http://127.0.0.1:{server.server_port}"
    path = write_kubeconfig(tmp_path / "later.kubeconfig", address, {"token": "one"})
    first = connect("later")
    assert connect("later") is first
    server.say("/version", 200, {"gitVersion": "v1.37.2"})
    assert first.version().git_version == "v1.37.2"
    write_kubeconfig(path, address, {"token": "two"})
    os.utime(path, ns=(1, 1))
    connect("later").version()
    assert [sent for _, sent in server.asked] == ["Bearer one", "Bearer two"]
