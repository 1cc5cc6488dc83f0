from __future__ import annotations

import copy
from typing import Any

import pytest

from models_app.domain.replicas import ReplicaRange, ReplicasPlan
from models_app.engines.base import RefusedManifest, rendered
from models_app.engines.flexinfer import FlexInferEngine, model_problems
from tests.models_app.engines.specs import SPECS, make_spec

ENGINE = FlexInferEngine()
GOOD = rendered(ENGINE, SPECS["flexinfer-amd"][1])[0]["spec"]


def changed(**parts: Any) -> dict[str, Any]:
    """The good spec with ``parts`` merged in, one level deep."""
    spec = copy.deepcopy(GOOD)
    for name, value in parts.items():
        spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
    return spec


def test_the_good_spec_is_good() -> None:
    assert model_problems(GOOD) == []


C24 = {
    "GPU in limits": (changed(resources={"limits": {"nvidia.com/gpu": "1"}}), "spec.resources.limits[nvidia.com/gpu]"),
    "GPU in requests": (changed(resources={"requests": {"amd.com/gpu": "1"}}), "spec.resources.requests[amd.com/gpu]"),
    "count 9": (changed(gpu={"count": 9}), "spec.gpu.count"),
    "count 0": (changed(gpu={"count": 0}), "spec.gpu.count"),
    "minReplicas 11": (changed(serverless={"minReplicas": 11}), "spec.serverless.minReplicas"),
    "minReplicas -1": (changed(serverless={"minReplicas": -1}), "spec.serverless.minReplicas"),
    "priority 1001": (changed(gpu={"priority": 1001}), "spec.gpu.priority"),
    "cpu with count": (changed(gpu={"vendor": "cpu", "count": 1, "vramEstimateMB": 0}), "spec.gpu.count"),
    "pvc with Local": (changed(source="pvc://x/y", cache={"strategy": "Local"}), "spec.cache.strategy"),
    "vendor NVIDIA": (changed(gpu={"vendor": "NVIDIA"}), "spec.gpu.vendor"),
    "11 service labels": (changed(serviceLabels=[str(number) for number in range(11)]), "spec.serviceLabels"),
    "unpinned": (changed(imageDigest=""), "spec.imageDigest"),
    "vendor selector": (
        changed(nodeSelector={"node.flexstack.io/gpu-vendor": "nvidia"}),
        "spec.nodeSelector[node.flexstack.io/gpu-vendor]",
    ),
}


@pytest.mark.parametrize("name", C24)
def test_c24_the_draft_is_refused_with_the_field_named(name: str) -> None:
    spec, field = C24[name]
    assert [problem.field for problem in model_problems(spec)] == [field]


@pytest.mark.parametrize(
    "spec",
    [
        changed(gpu={"count": 8}),
        changed(serverless={"minReplicas": 10}),
        changed(gpu={"priority": 0}),
        changed(gpu={"priority": 1000}),
        changed(source="pvc://x/y", cache={"strategy": "SharedPVC"}),
        changed(nodeSelector={"node.flexstack.io/gpu-vendor": "amd"}),
        changed(serviceLabels=[str(number) for number in range(10)]),
    ],
)
def test_c24_the_edges_are_taken(spec: dict[str, Any]) -> None:
    assert model_problems(spec) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"devices": 9}, "devices_per_replica"),
        ({"replicas": ReplicaRange(11, 11)}, "replicas_min"),
        ({"replicas": ReplicaRange(1, 3)}, "replicas_max"),
        ({"vendor": "NVIDIA"}, "profile"),
        ({"arguments": ("--x",)}, "arguments"),
        ({"source_file": ""}, "source_file"),
    ],
)
def test_the_request_form_is_told_by_its_own_field(changes: dict[str, Any], field: str) -> None:
    assert [problem.field for problem in ENGINE.spec_problems(make_spec(**changes))] == [field]


def test_a_draft_that_breaks_a_rule_is_never_rendered_to_the_cluster() -> None:
    with pytest.raises(RefusedManifest, match=r"spec.gpu.count"):
        rendered(ENGINE, make_spec(devices=9, replicas_plan=ReplicasPlan(1)))


def test_cpu_leaves_the_card_fields_out() -> None:
    assert rendered(ENGINE, make_spec(devices=0))[0]["spec"]["gpu"] == {"vendor": "cpu"}


def test_vram_is_rounded_up_to_whole_mebibytes() -> None:
    assert rendered(ENGINE, make_spec(vram_bytes=2**20 + 1))[0]["spec"]["gpu"]["vramEstimateMB"] == 2
