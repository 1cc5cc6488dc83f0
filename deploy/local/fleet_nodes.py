"""fleet.yaml as Node objects, and the cluster's nodes made so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import yaml

from deploy.local.controlplane_api import Api

Json = dict[str, Any]
FLEET_FILE = Path(__file__).with_name("fleet.yaml")
_MARK = "slipway.local/fleet"


def nodes_of(path: Path = FLEET_FILE) -> list[Json]:
    """The Node manifests that ``path`` describes: ``count`` of each group, named ``<name>-1`` and on.

    Raises RuntimeError that says what is wrong with which group: a person edits this file.
    """
    try:
        groups = yaml.safe_load(path.read_text())["groups"]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise RuntimeError(f"{path.name}: it must be YAML with a list `groups`: {error}") from error
    nodes = []
    for place, group in enumerate(groups or [], start=1):
        try:
            nodes += [_node(group, number) for number in range(1, group["count"] + 1)]
        except (KeyError, TypeError, AttributeError) as error:
            called = group.get("name", place) if isinstance(group, dict) else place
            raise RuntimeError(
                f"{path.name}, group {called}: wrong or missing: {error}; "
                "a group needs `name`, `count` (a number) and `resources`, and may have `labels` and `taints`"
            ) from error
    return nodes


def _node(group: Json, number: int) -> Json:
    name = f"{group['name']}-{number}"
    resources = {key: str(value) for key, value in group["resources"].items()}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        _MARK: group["name"],
        **{key: str(value) for key, value in group.get("labels", {}).items()},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": group.get("taints", [])},
        "status": {"capacity": resources, "allocatable": dict(resources)},
    }


def set_nodes(api: Api, nodes: list[Json]) -> None:
    """Make the cluster's fleet nodes those of ``nodes``: create, correct, and remove those no longer listed."""
    known = {node["metadata"]["name"]: node for node in api.items("v1", "Node", labelSelector=_MARK)}
    wanted = {node["metadata"]["name"]: node for node in nodes}
    for name in known.keys() - wanted.keys():
        api.delete(f"/api/v1/nodes/{name}")
    for name, node in wanted.items():
        if name not in known:
            api.create(node)
        else:
            _correct(api, known[name], node)


def set_devices(api: Api, node: str, resource: str, *, allocatable: int, capacity: int | None = None) -> None:
    """Withdraw or give back devices of a node, as a device plugin does (case C09)."""
    status: Json = {"allocatable": {resource: str(allocatable)}}
    if capacity is not None:
        status["capacity"] = {resource: str(capacity)}
    api.patch(f"/api/v1/nodes/{node}/status", {"status": status})


def _correct(api: Api, known: Json, wanted: Json) -> None:
    """Put labels, own taints and resources right on a node that stayed from an earlier run."""
    name = wanted["metadata"]["name"]
    dropped = {
        key: None
        for key in known["metadata"]["labels"]
        if key not in wanted["metadata"]["labels"] and "kubernetes.io" not in key
    }
    mine = wanted["spec"]["taints"]
    # Taints of the node controller (not-ready, unreachable) are its own.
    system = [taint for taint in known["spec"].get("taints", []) if taint["key"].startswith("node.kubernetes.io/")]
    body = {"metadata": {"labels": {**dropped, **wanted["metadata"]["labels"]}}, "spec": {"taints": [*mine, *system]}}
    api.patch(f"/api/v1/nodes/{name}", body)
    status = {part: _replaced(known["status"].get(part, {}), wanted["status"][part]) for part in ("capacity", "allocatable")}
    try:
        api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
    except httpx.HTTPStatusError as error:
        raise RuntimeError(f"node {name} of fleet.yaml was refused: {error}") from error


def _replaced(old: Json, new: Json) -> Json:
    """A merge patch that leaves exactly ``new``."""
    return {**dict.fromkeys(old.keys() - new.keys()), **new}
