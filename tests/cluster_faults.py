"""A proxy before the real API server that misbehaves on demand: slow, refusing, cutting, losing answers that took effect."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_api import Kubeconfig

_PASSED_ON = ("Accept", "Authorization", "Content-Type", "User-Agent")
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
}


@dataclass
class Fault:
    """What happens to requests whose ``METHOD path?query`` matches ``pattern``, the next ``times`` times (None: always).

    In this order: wait ``delay`` seconds; answer ``status`` without asking the server; ``drop`` closes the connection before
    asking; ``lose`` asks, and closes without passing the answer on; ``cut`` passes that many lines of the answer on, then
    half of the next, and closes.
    """

    pattern: str
    times: int | None = 1
    delay: float = 0.0
    status: int | None = None
    reason: str = ""
    retry_after: int | None = None
    drop: bool = False
    lose: bool = False
    cut: int | None = None
    hits: int = 0

    def applies(self, request: str) -> bool:
        return (self.times is None or self.hits < self.times) and re.search(self.pattern, request) is not None

    def body(self) -> bytes:
        """The Status object that the API server would answer with."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"fault injected by the test: {self.status}",
            "reason": self.reason or _REASONS.get(self.status or 0, "Unknown"),
            "code": self.status,
        }
        if self.retry_after is not None:
            status["details"] = {"retryAfterSeconds": self.retry_after}
        return json.dumps(status).encode()


@dataclass
class FaultyApi:
    """The proxy: add faults, see what was asked. ``url`` speaks plain HTTP on loopback."""

    upstream: httpx.Client
    faults: list[Fault] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, pattern: str, **what: Any) -> Fault:
        """Add a fault, see Fault; the newest that applies wins."""
        fault = Fault(pattern, **what)
        with self._lock:
            self.faults.insert(0, fault)
        return fault

    def clear(self) -> None:
        """From now on everything passes."""
        with self._lock:
            self.faults.clear()

    def requests(self, pattern: str) -> list[tuple[str, int]]:
        """(``METHOD path?query``, answered status; 0 = connection closed) of what was asked so far."""
        with self._lock:
            return [one for one in self.asked if re.search(pattern, one[0])]

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: str) -> Fault | None:
        with self._lock:
            fault = next((one for one in self.faults if one.applies(request)), None)
            if fault is not None:
                fault.hits += 1
            return fault

    def note(self, request: str, status: int) -> None:
        with self._lock:
            self.asked.append((request, status))


class _Handler(BaseHTTPRequestHandler):
    api: FaultyApi
    protocol_version = "HTTP/1.1"

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = f"{self.command} {self.path}"
        fault = self.api.take(request)
        if fault is not None and fault.delay:
            threading.Event().wait(fault.delay)
        if fault is not None and fault.status is not None:
            self.api.note(request, fault.status)
            self._answer(fault)
            return
        if fault is not None and fault.drop:
            self.api.note(request, 0)
            self._close()
            return
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        try:
            with self.api.upstream.stream(self.command, self.path, headers=headers, content=body) as answer:
                if fault is not None and fault.lose:
                    answer.read()
                    self.api.note(request, 0)
                    self._close()
                    return
                self.api.note(request, answer.status_code)
                self._pass_on(answer, fault.cut if fault is not None else None)
        except (httpx.HTTPError, OSError):
            self._close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

    def _answer(self, fault: Fault) -> None:
        body = fault.body()
        assert fault.status is not None
        self.send_response(fault.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if fault.retry_after is not None:
            self.send_header("Retry-After", str(fault.retry_after))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, answer: httpx.Response, cut: int | None) -> None:
        self.send_response(answer.status_code)
        for name in ("Content-Type", "Retry-After"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if cut is None:
            for part in answer.iter_bytes():
                self._chunk(part)
        else:
            for number, line in enumerate(answer.iter_lines()):
                if number == cut:
                    self._chunk(line[: len(line) // 2].encode())
                    self._close()
                    return
                self._chunk(line.encode() + b"\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, part: bytes) -> None:
        if part:
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.flush()

    def _close(self) -> None:
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's output."""


@pytest.fixture
def faulty_api(cluster_credential: str, control_plane: ControlPlane, settings: Any) -> Iterator[FaultyApi]:
    """The proxy; the credential ``local`` goes through it in this test."""
    path = Path(settings.CLUSTER_CREDENTIALS_DIR) / f"{cluster_credential}.kubeconfig"
    direct = Kubeconfig.read(path)
    options = {
        **direct.options(),
        "headers": {},
        "timeout": httpx.Timeout(30, read=330),
        "limits": httpx.Limits(max_connections=200),
    }
    with httpx.Client(**options) as upstream:
        api = FaultyApi(upstream)
        api.start()
        Kubeconfig(server=api.url, authority="", token=direct.token).write(path)
        yield api
        api.stop()
