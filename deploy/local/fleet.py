"""The local fleet as one thing: binaries, control plane, kwok, nodes, engine agent, and the portal's kubeconfig."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import httpx

from deploy.local.binaries import BuildStopped, Progress, build_all
from deploy.local.controlplane import ControlPlane
from deploy.local.controlplane_process import Daemon
from deploy.local.fleet_nodes import FLEET_FILE, nodes_of, set_nodes
from deploy.local.kwok import Kwok, PodNetwork
from deploy.local.state import CHECKOUT

_RENEW_SECONDS = 24 * 3600


def engine_agent(*, kubeconfig: Path, work: Path, logs: Path, fleet: Path = FLEET_FILE) -> Daemon:
    """The engine agent's process (deploy/local/agent.py)."""
    command = [
        sys.executable,
        "-m",
        "deploy.local.agent",
        "--kubeconfig",
        str(kubeconfig),
        "--fleet",
        str(fleet),
        "--work",
        str(work),
    ]
    return Daemon("engine-agent", command, log=logs / "engine-agent.log", cwd=CHECKOUT)


class LocalFleet:
    """Start with ``start()``, in any thread; stop with ``stop()``, also while it starts, also twice.

    ``credentials``/local.kubeconfig appears last, once the cluster is whole. ``progress(step, fraction)`` is told of each
    step; setting ``stopped`` ends a build soon. Raises RuntimeError or OSError when a part does not come up. A part that
    ends by itself is started again within a second, unless ``tended`` was set to False (tests break parts on purpose).
    """

    def __init__(
        self, *, state: Path, credentials: Path, progress: Progress, stopped: threading.Event, fsync: bool = True
    ) -> None:
        self.control_plane = ControlPlane(state, fsync=fsync)
        self.kwok: Kwok | None = None
        self.agent: Daemon | None = None
        self.tended = True
        self._credentials = credentials
        self._progress = progress
        self._stopped = stopped
        self._network = PodNetwork(state)
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def start(self) -> None:
        """1. Build what is missing. 2. Control plane. 3. Nodes and kwok. 4. Engine agent. 5. The portal's kubeconfig."""
        build_all(self._build_progress, self._stopped)
        with self._lock:
            self._go_on()
            plane = self.control_plane
            try:
                self._progress("starting the Kubernetes control plane", 0.9)
                plane.start()
                self._progress("registering the demo fleet's nodes", 0.95)
                set_nodes(plane.api, nodes_of())
                cidr = self._network.claim()
                self.kwok = Kwok(kubeconfig=plane.admin_kubeconfig, cidr=cidr, logs=plane.logs)
                self.kwok.start()
                self.agent = engine_agent(kubeconfig=plane.admin_kubeconfig, work=plane.state, logs=plane.logs)
                self.agent.start()
                plane.write_credential(self._credentials, "local")
            except httpx.HTTPError as error:
                raise RuntimeError(f"the local cluster answered with an error: {error}") from error
            if self.tended:
                threading.Thread(target=self._tend, name="slipway-fleet", daemon=True).start()

    def stop(self) -> None:
        """Stop every part; what runs in pods ends with the agent, and starts again with the next one."""
        self._ended.set()
        with self._lock:
            for daemon in (self.agent, self.kwok):
                if daemon is not None:
                    daemon.stop()
            self.control_plane.stop()
            self._network.release()

    def _build_progress(self, step: str, fraction: float | None) -> None:
        self._progress(step, fraction * 0.9 if fraction is not None else None)

    def _go_on(self) -> None:
        if self._ended.is_set() or self._stopped.is_set():
            raise BuildStopped("stopped before the cluster started")

    def _renewed(self) -> bool:
        try:
            self.control_plane.write_credential(self._credentials, "local")
        except httpx.HTTPError:
            return False
        return True

    def _tend(self) -> None:
        """Start again what ended by itself, and renew the portal's token long before it expires."""
        renew_at = time.monotonic() + _RENEW_SECONDS
        while not self._ended.wait(1):
            with self._lock:
                if self._ended.is_set():
                    return
                self.control_plane.heal()
                if time.monotonic() > renew_at:
                    renew_at += _RENEW_SECONDS if self._renewed() else 60
                for daemon in (self.kwok, self.agent):
                    if daemon is not None and not daemon.running:
                        daemon.start()
