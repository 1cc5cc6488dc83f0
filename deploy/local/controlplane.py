"""A real Kubernetes control plane on loopback: etcd, API server, controller manager, scheduler."""

from __future__ import annotations

import secrets
import signal
import time
from pathlib import Path

import httpx
import yaml

from deploy.local.binaries import TOOLS, binary_path
from deploy.local.controlplane_api import Api, Kubeconfig
from deploy.local.controlplane_process import Daemon
from deploy.local.ports import free_port

_RBAC = Path(__file__).with_name("controlplane_rbac.yaml")
_READY_WITHIN = 60.0
_KEYS_SECONDS = 300 * 24 * 3600
_TOKEN_SECONDS = 30 * 24 * 3600


class ControlPlane:
    """One control plane whose data, keys and logs live under ``state``; ports are free ones, kept until stop().

    ``fsync=False`` runs etcd without fsync: for tests and benchmarks, whose data nobody needs after a power cut.
    ``start`` needs the binaries of deploy.local.binaries; it returns when the API server answers ready and the controller
    manager and scheduler run. It raises RuntimeError with the log's last lines when a part does not come up.
    """

    def __init__(self, state: Path, *, fsync: bool = False) -> None:
        self.state = state
        self.fsync = fsync
        self.logs = state / "logs"
        self.admin_kubeconfig = state / "admin.kubeconfig"
        self.url = ""
        self._daemons: dict[str, Daemon] = {}
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        """Calls as cluster administrator."""
        if self._api is None:
            raise RuntimeError("the control plane is not started")
        return self._api

    def start(self) -> None:
        """1. etcd and API server. 2. Once ready: the portal's account and rights. 3. Controller manager and scheduler."""
        self.state.mkdir(parents=True, exist_ok=True)
        self._forget_old_keys()
        self._plan()
        self._daemons["etcd"].start()
        self.start_apiserver()
        self._api = Api(self.admin_kubeconfig)
        for manifest in yaml.safe_load_all(_RBAC.read_text()):
            self._api.apply(manifest)
        self._daemons["kube-controller-manager"].start()
        self._daemons["kube-scheduler"].start()

    def stop(self) -> None:
        """Stop all parts, API server before etcd; safe at any moment, also twice."""
        if self._daemons and not self._daemons["etcd"].running:
            # It would wait for etcd before it ends.
            self.kill_apiserver()
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self._daemons:
                self._daemons[name].stop()
        if self._api is not None:
            self._api.close()
            self._api = None

    def heal(self) -> list[str]:
        """Start the parts that ended by themselves; their names. For a supervisor to call about once a second."""
        ended = [daemon for daemon in self._daemons.values() if not daemon.running]
        for daemon in ended:
            daemon.start()
        return [daemon.name for daemon in ended]

    def mend(self) -> list[str]:
        """Put right what a fault broke: start what is stopped, wake what is frozen, wait until the API server is ready.

        Returns the names of the parts that were stopped. The controller manager and the scheduler, which back off up to
        30 s from an API server that is away, are started anew after such an outage.
        """
        stopped = [daemon.name for daemon in self._daemons.values() if not daemon.running]
        if {"etcd", "kube-apiserver"} & set(stopped):
            for name in ("kube-controller-manager", "kube-scheduler"):
                self._daemons[name].kill()
        for daemon in self._daemons.values():
            daemon.send(signal.SIGCONT)
        self._daemons["etcd"].start()
        self.start_apiserver()
        self.heal()
        return stopped

    def daemon(self, name: str) -> Daemon:
        """A part by its binary's name, to stop, kill or freeze it."""
        return self._daemons[name]

    def kill_apiserver(self) -> None:
        """SIGKILL the API server; watches break, its port refuses."""
        self._daemons["kube-apiserver"].kill()

    def start_apiserver(self) -> None:
        """Start the API server on the port it had and wait until it is ready."""
        daemon = self._daemons["kube-apiserver"]
        daemon.start()
        certificate = self.state / "pki" / "apiserver.crt"
        deadline = time.monotonic() + _READY_WITHIN
        while time.monotonic() < deadline:
            if not daemon.running or not self._daemons["etcd"].running:
                ended = daemon if not daemon.running else self._daemons["etcd"]
                raise RuntimeError(f"{ended.name} ended; its log {ended.log} closes with:\n{ended.tail()}")
            if certificate.exists() and self._answers(certificate.read_text()):
                if not self.admin_kubeconfig.exists() or Kubeconfig.read(self.admin_kubeconfig).server != self.url:
                    self._kubeconfig(self._token("admin")).write(self.admin_kubeconfig)
                return
            time.sleep(0.1)
        raise RuntimeError(
            f"the API server was not ready within {_READY_WITHIN:.0f} s; its log {daemon.log} closes with:\n{daemon.tail()}"
        )

    def write_credential(self, directory: Path, name: str) -> Path:
        """Write ``<directory>/<name>.kubeconfig`` for the portal's own account, with a fresh token; replaced in one step."""
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        response = self.api.http.post("/api/v1/namespaces/slipway-system/serviceaccounts/slipway/token", json=asked)
        response.raise_for_status()
        path = directory / f"{name}.kubeconfig"
        self._kubeconfig(response.json()["status"]["token"]).write(path)
        return path

    def _answers(self, authority: str) -> bool:
        options = Kubeconfig(server=self.url, authority=authority, token=self._token("admin")).options()
        try:
            with httpx.Client(**options) as client:
                return client.get("/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def _kubeconfig(self, token: str) -> Kubeconfig:
        return Kubeconfig(server=self.url, authority=(self.state / "pki" / "apiserver.crt").read_text(), token=token)

    def _token(self, name: str) -> str:
        """A component's bearer token, made once per state folder."""
        path = self.state / f"{name}.token"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24))
        return path.read_text()

    def _forget_old_keys(self) -> None:
        """The API server's own certificate lasts a year; a state folder may last longer."""
        certificate = self.state / "pki" / "apiserver.crt"
        if certificate.exists() and time.time() - certificate.stat().st_mtime > _KEYS_SECONDS:
            certificate.unlink()
            (self.state / "pki" / "apiserver.key").unlink()
            self.admin_kubeconfig.unlink(missing_ok=True)

    def _plan(self) -> None:
        """Choose ports and lay out the commands."""
        paths = {tool.name: str(binary_path(tool)) for tool in TOOLS}
        etcd, peer, port = free_port(), free_port(), free_port()
        manager_port, scheduler_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{port}"
        tokens = self.state / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self._token("admin")},admin,admin,"system:masters"\n')
        pki = self.state / "pki"
        pki.mkdir(exist_ok=True, mode=0o700)
        key = str(pki / "apiserver.key")
        commands = {
            "etcd": [
                paths["etcd"], "--name=local", f"--data-dir={self.state / 'etcd'}", "--log-level=warn",
                f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster=local=http://127.0.0.1:{peer}", *([] if self.fsync else ["--unsafe-no-fsync"]),
            ],
            "kube-apiserver": [
                paths["kube-apiserver"], f"--etcd-servers=http://127.0.0.1:{etcd}",
                "--bind-address=127.0.0.1", f"--secure-port={port}", "--advertise-address=127.0.0.1",
                # The server makes its own certificate and RSA key here, before it reads the key that signs account tokens.
                f"--cert-dir={pki}", f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
                "--anonymous-auth=false",
                f"--token-auth-file={tokens}", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
                "--profiling=false", "--v=0",
            ],
            "kube-controller-manager": [
                paths["kube-controller-manager"], f"--kubeconfig={self.admin_kubeconfig}", "--leader-elect=false",
                "--bind-address=127.0.0.1", f"--secure-port={manager_port}", f"--cert-dir={self.state / 'pki-manager'}",
                f"--service-account-private-key-file={key}", f"--root-ca-file={pki / 'apiserver.crt'}",
                "--kube-api-qps=200", "--kube-api-burst=400", "--profiling=false",
            ],
            "kube-scheduler": [
                paths["kube-scheduler"], f"--kubeconfig={self.admin_kubeconfig}", "--leader-elect=false",
                "--bind-address=127.0.0.1", f"--secure-port={scheduler_port}", f"--cert-dir={self.state / 'pki-scheduler'}",
                "--kube-api-qps=200", "--kube-api-burst=400", "--profiling=false",
            ],
        }  # fmt: skip
        self._daemons = {name: Daemon(name, command, log=self.logs / f"{name}.log") for name, command in commands.items()}
