"""A plain client of the local API server for what sets the fleet up, plays its kubelets and tests it.

The product has its own adapter (fleet.cluster); this one exists so that the local fleet does not depend on what it tests.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

Json = dict[str, Any]
_PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """What this client needs of a kubeconfig: where, whom to trust (PEM; empty for plain HTTP), and the bearer token."""

    server: str
    authority: str
    token: str

    @classmethod
    def read(cls, path: Path) -> Kubeconfig:
        content = yaml.safe_load(path.read_text())
        cluster = content["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        return cls(server=cluster["server"], authority=authority, token=content["users"][0]["user"]["token"])

    def write(self, path: Path) -> None:
        """Replace ``path`` in one step, readable by its owner only."""
        encoded = base64.b64encode(self.authority.encode()).decode()
        trusted = {"certificate-authority-data": encoded} if encoded else {}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [
                {
                    "name": "local",
                    "cluster": {"server": self.server, **trusted},
                }
            ],
            "users": [{"name": "local", "user": {"token": self.token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        part.write_text(yaml.safe_dump(content))
        part.replace(path)

    def options(self) -> dict[str, Any]:
        """Keyword arguments of an httpx client."""
        context = ssl.create_default_context(cadata=self.authority) if self.authority else True
        return {
            "base_url": self.server,
            "headers": {"Authorization": f"Bearer {self.token}"},
            "verify": context,
            "trust_env": False,
            "timeout": httpx.Timeout(15),
        }


_PLURALS = {
    "Endpoints": "endpoints",
    "NetworkPolicy": "networkpolicies",
    "StorageClass": "storageclasses",
}
CLUSTER_SCOPED = {"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass"}


def collection_path(api_version: str, kind: str, namespace: str = "") -> str:
    """The path of a kind's collection; ``namespace`` empty means all of them, or a kind outside namespaces."""
    plural = _PLURALS.get(kind, kind.lower() + "s")
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def object_path(manifest: Json) -> str:
    """The path of the object that ``manifest`` names."""
    meta = manifest["metadata"]
    namespace = "" if manifest["kind"] in CLUSTER_SCOPED else meta.get("namespace", "default")
    return f"{collection_path(manifest['apiVersion'], manifest['kind'], namespace)}/{meta['name']}"


class Api:
    """Synchronous calls; every method raises httpx.HTTPStatusError on an error answer, with the server's words in it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.http = httpx.Client(**Kubeconfig.read(kubeconfig).options())

    def close(self) -> None:
        self.http.close()

    def _answer(self, response: httpx.Response) -> Json:
        if response.is_error:
            request = response.request
            raise httpx.HTTPStatusError(
                f"{request.method} {request.url.path}: {response.status_code} {response.text[:500]}",
                request=request,
                response=response,
            )
        return dict(response.json()) if response.content else {}

    def get(self, path: str) -> Json | None:
        """The object at ``path``, or None when there is none."""
        response = self.http.get(path)
        return None if response.status_code == 404 else self._answer(response)

    def items(self, api_version: str, kind: str, namespace: str = "", **params: str) -> list[Json]:
        return list(
            self._answer(self.http.get(collection_path(api_version, kind, namespace), params=params)).get("items", [])
        )

    def create(self, manifest: Json) -> Json:
        collection = object_path(manifest).rsplit("/", 1)[0]
        return self._answer(self.http.post(collection, json=manifest))

    def apply(self, manifest: Json, *, manager: str = "local-fleet", dry_run: bool = False) -> Json:
        """Server-side apply, forced: what this client sets up is its own."""
        params = {"fieldManager": manager, "force": "true", **({"dryRun": "All"} if dry_run else {})}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        return self._answer(
            self.http.patch(object_path(manifest), params=params, headers=headers, content=json.dumps(manifest))
        )

    def patch(self, path: str, body: Json, *, how: str = "merge") -> Json:
        return self._answer(self.http.patch(path, headers={"Content-Type": _PATCHES[how]}, content=json.dumps(body)))

    def delete(self, path: str, *, grace: int | None = None) -> Json | None:
        """Ask for deletion; None when it was already gone."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        response = self.http.request("DELETE", path, json=body)
        return None if response.status_code == 404 else self._answer(response)

    def watch(self, path: str, *, seconds: int, **params: str) -> Iterator[Json]:
        """Events of a collection from now on (or ``resourceVersion``), for at most ``seconds``."""
        query = {"watch": "1", "timeoutSeconds": str(seconds), **params}
        with self.http.stream("GET", path, params=query, timeout=httpx.Timeout(15, read=seconds + 15)) as response:
            if response.is_error:
                response.read()
                self._answer(response)
            for line in response.iter_lines():
                if line:
                    yield json.loads(line)
