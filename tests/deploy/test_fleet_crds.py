"""The project's own cut-down definitions agree with upstream's where they overlap, and enforce what upstream enforces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from deploy.local import fleet_crds
from deploy.local.controlplane_api import Api

NAME = "ai.flexinfer_models.yaml"


def spec_of(path: Any) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def without_words(schema: Any) -> Any:
    """A schema without what is only text, and without the int-or-string detail that the cut-down one leaves out."""
    if isinstance(schema, dict):
        if schema.get("x-kubernetes-int-or-string"):
            return {"x-kubernetes-int-or-string": True}
        return {
            key: without_words(value)
            for key, value in schema.items()
            if key not in {"description", "x-kubernetes-validations"}
        }
    return schema


def only_known(upstream: Any, own: Any) -> Any:
    """Upstream's schema, its properties cut to those that ``own`` has."""
    if isinstance(upstream, dict) and isinstance(own, dict):
        return {
            key: {name: only_known(value[name], own[key][name]) for name in value if name in own.get(key, {})}
            if key == "properties"
            else only_known(value, own.get(key))
            for key, value in upstream.items()
        }
    return upstream


@pytest.mark.skipif(not fleet_crds.UPSTREAM.exists(), reason="the upstream definitions are not beside this checkout")
def test_the_cut_down_schema_is_a_part_of_upstreams() -> None:
    own = without_words(spec_of(fleet_crds.OWN / NAME))
    upstream = without_words(spec_of(fleet_crds.UPSTREAM / "flexinfer" / NAME))
    cut = only_known(upstream, own)
    assert {**own, "properties": {}} == {**cut, "properties": {}}
    for name, schema in own["properties"].items():
        assert schema == cut["properties"][name], name


@pytest.fixture(params=["own", "upstream"])
def definition(request: pytest.FixtureRequest, admin: Api) -> Iterator[None]:
    path = fleet_crds.OWN / NAME if request.param == "own" else fleet_crds.UPSTREAM / "flexinfer" / NAME
    if not path.exists():
        pytest.skip("the upstream definitions are not beside this checkout")
    names = fleet_crds.install(admin, path)
    yield
    fleet_crds.remove(admin, names)


@pytest.mark.cluster
@pytest.mark.usefixtures("definition")
def test_c24_both_definitions_refuse_and_accept_alike(admin: Api, namespace: str) -> None:
    def dry_run(**spec: Any) -> str:
        model = {
            "apiVersion": "ai.flexinfer/v1alpha2",
            "kind": "Model",
            "metadata": {"name": "m", "namespace": namespace},
            "spec": {"backend": "llamacpp", "source": "hf://acme/tiny", **spec},
        }
        try:
            admin.apply(model, dry_run=True)
        except httpx.HTTPStatusError as error:
            return str(error)
        return ""

    assert dry_run(gpu={"vendor": "amd", "count": 1}, serverless={"minReplicas": 0}) == ""
    assert "GPU limits" in dry_run(resources={"limits": {"nvidia.com/gpu": 1}})
    assert "spec.gpu.count" in dry_run(gpu={"count": 9})
    assert "spec.serverless.minReplicas" in dry_run(serverless={"minReplicas": 11})
    assert "spec.gpu.priority" in dry_run(gpu={"priority": 1001})
    assert "gpu.count must be omitted" in dry_run(gpu={"vendor": "cpu", "count": 1})
    assert "spec.cache.strategy" in dry_run(source="pvc://x", cache={"strategy": "Memory"})
    assert "spec.gpu.vendor" in dry_run(gpu={"vendor": "NVIDIA"})
    assert "spec.serviceLabels" in dry_run(serviceLabels=[str(number) for number in range(11)])
