"""kwok: plays the kubelets of the local fleet's nodes, by the Stages beside this file."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx

from deploy.local.binaries import TOOLS, binary_path
from deploy.local.controlplane_api import Api
from deploy.local.controlplane_process import Daemon

STAGES = Path(__file__).with_name("kwok_stages.yaml")
_NETWORKS = range(64, 128)
_CLAIM_PORT = 20064


class PodNetwork:
    """A /16 of loopback addresses for pods, 127.N.0.0, that no other fleet on this machine uses now.

    It is claimed by listening on its last usable address: the claim ends with the process, however that ends. ``state``
    remembers the last N, so that pods kept in etcd find their addresses again.
    """

    def __init__(self, state: Path) -> None:
        self._memory = state / "pod-network"
        self._claim: socket.socket | None = None
        self.cidr = ""

    def claim(self) -> str:
        """The CIDR, for example ``127.64.0.0/16``. Raises RuntimeError when all are taken."""
        if self._claim is not None:
            return self.cidr
        last = [int(self._memory.read_text())] if self._memory.exists() else []
        for number in [*last, *_NETWORKS]:
            claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                claim.bind((f"127.{number}.255.254", _CLAIM_PORT))
                claim.listen(1)
            except OSError:
                claim.close()
                continue
            self._claim = claim
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            self._memory.write_text(str(number))
            self.cidr = f"127.{number}.0.0/16"
            return self.cidr
        raise RuntimeError(
            f"all {len(_NETWORKS)} loopback networks for pods are taken by other local fleets on this machine"
        )

    def release(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None


class Kwok(Daemon):
    """The kwok process for every node of the cluster; pod addresses come from ``cidr``.

    Each kwok process holds the nodes' leases under a name of its own, and the next one would wait out what is left of them
    (40 s) before it plays a single pod. No two run at once here, so a start takes the old leases away.
    """

    def __init__(self, *, kubeconfig: Path, cidr: str, logs: Path) -> None:
        binary = next(binary_path(tool) for tool in TOOLS if tool.name == "kwok")
        command = [
            str(binary), f"--kubeconfig={kubeconfig}", f"--config={STAGES}", "--manage-all-nodes=true", f"--cidr={cidr}",
            "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40",
        ]  # fmt: skip
        super().__init__("kwok", command, log=logs / "kwok.log")
        self._kubeconfig = kubeconfig

    def start(self) -> None:
        if self.running:
            return
        api = Api(self._kubeconfig)
        try:
            api.http.request("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", timeout=3)
        except httpx.TransportError:
            # The API server is away: kwok waits for it, and then for the leases.
            pass
        finally:
            api.close()
        super().start()
