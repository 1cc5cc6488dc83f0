"""What the engines render, against the real API server: taken as rendered, refused where the portal's own check refuses."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.local.controlplane_api import Api
from fleet.cluster import ClusterPort, Invalid, NotInstalled, connect
from models_app.engines.base import rendered
from models_app.engines.registry import engine_of
from tests.models_app.engines.specs import SPECS
from tests.models_app.engines.test_flexinfer import C24

pytestmark = pytest.mark.cluster


@pytest.fixture
def port(cluster_credential: str) -> ClusterPort:
    return connect(cluster_credential)


@pytest.fixture
def restricted(admin: Api, namespace: str) -> str:
    """A namespace that enforces the Pod Security level of project spaces."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    return namespace


def objects(name: str, namespace: str) -> list[dict[str, Any]]:
    engine, spec = SPECS[name]
    return rendered(engine_of(engine), replace(spec, namespace=namespace))


@pytest.mark.parametrize("name", [name for name, (engine, _) in SPECS.items() if engine == "plain"])
def test_plain_objects_are_taken_as_rendered(port: ClusterPort, restricted: str, name: str) -> None:
    for manifest in objects(name, restricted):
        live = port.apply(manifest, dry_run=True)
        assert live["kind"] == manifest["kind"]


def test_pods_of_the_templates_pass_the_restricted_level(admin: Api, restricted: str) -> None:
    for name in [name for name, (engine, _) in SPECS.items() if engine == "plain"]:
        template = objects(name, restricted)[0]["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": restricted, "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        }
        assert admin.create(pod)["metadata"]["uid"]


@pytest.mark.parametrize("name", [name for name, (engine, _) in SPECS.items() if engine == "flexinfer"])
def test_models_are_taken_by_the_upstream_definition(
    port: ClusterPort, flexinfer_crd: Path, namespace: str, name: str
) -> None:
    [manifest] = objects(name, namespace)
    live = port.apply(manifest, dry_run=True)
    for key, value in manifest["spec"].items():
        assert _within(value, live["spec"][key]), f"{key} was changed or dropped: {live['spec'][key]}"


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(key in live and _within(value, live[key]) for key, value in wanted.items())
    return bool(wanted == live)


ENFORCED = ("GPU in limits", "GPU in requests", "count 9", "count 0", "minReplicas 11", "priority 1001", "cpu with count")


@pytest.mark.parametrize("name", [*ENFORCED, "vendor NVIDIA", "11 service labels", "vendor selector"])
def test_c24_what_the_portal_refuses_the_api_server_refuses_too(
    port: ClusterPort, flexinfer_crd: Path, namespace: str, name: str
) -> None:
    [manifest] = copy.deepcopy(objects("flexinfer-amd", namespace))
    manifest["spec"] = C24[name][0]
    with pytest.raises(Invalid):
        port.apply(manifest, dry_run=True)


def test_without_the_operator_the_kind_is_not_there(port: ClusterPort, namespace: str) -> None:
    with pytest.raises(NotInstalled):
        port.apply(objects("flexinfer-amd", namespace)[0], dry_run=True)
