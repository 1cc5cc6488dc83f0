"""An HTTP server that answers LIST and WATCH of pods with scripted bytes: what a real API server does only when it is in
trouble. The real adapter reads it, so the cases are tested from the byte on the wire to the row."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fleet.cluster.kube import KubeCluster

EXPIRED = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}


@dataclass
class Script:
    """Answers in the order they are asked for. A list is (status, body); a watch is the raw bytes of its stream."""

    lists: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    watches: list[bytes] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)

    def list(self, *pods: dict[str, Any], version: int, more: str = "") -> None:
        metadata = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
        self.lists.append((200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(pods)}))

    def expire_list(self, more: str) -> None:
        self.lists.append((410, {**EXPIRED, "metadata": {"continue": more}}))

    def refuse_list(self, status: int) -> None:
        self.lists.append((status, {"kind": "Status", "status": "Failure", "code": status, "message": "no"}))

    def watch(self, *lines: bytes | dict[str, Any]) -> None:
        self.watches.append(
            b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
        )


def event(kind: str, pod: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": pod}


def bookmark(version: int) -> dict[str, Any]:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}})


@contextmanager
def serving(script: Script, folder: Path) -> Iterator[KubeCluster]:
    """The real adapter on a server that plays ``script``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            if url.path == "/api/v1":
                pods = {"kind": "Pod", "name": "pods", "namespaced": True, "verbs": ["list", "watch"]}
                self._answer(200, json.dumps({"kind": "APIResourceList", "resources": [pods]}).encode())
                return
            script.asked.append(query)
            if "watch" in query:
                self._answer(200, script.watches.pop(0))
            else:
                status, body = script.lists.pop(0)
                self._answer(status, json.dumps(body).encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet: the script says what was asked."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    kubeconfig = folder / "scripted.kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "it", "user": {"token": "t"}}],
            }
        )
    )
    try:
        yield KubeCluster(kubeconfig)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
