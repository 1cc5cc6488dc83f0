"""The demo fleet's file: what it promises, that it agrees with the demo's profiles, and that the cluster follows it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from deploy.local.controlplane_api import Api
from deploy.local.fleet_nodes import nodes_of, set_devices, set_nodes
from tests.cluster import condition, eventually

DEMO = yaml.safe_load((Path(__file__).resolve().parent.parent.parent / "deploy" / "local" / "demo.yaml").read_text())


def test_the_fleet_is_the_mixed_one() -> None:
    assert Counter(node["metadata"]["labels"]["flexinfer.ai/gpu.arch"] for node in nodes_of()) == {
        "sm_90": 5,
        "gfx1100": 2,
        "gfx906": 1,
        "sm_52": 1,
    }
    devices = Counter[str]()
    for node in nodes_of():
        devices.update({name: int(count) for name, count in node["status"]["allocatable"].items() if "gpu" in name})
    assert devices == {"nvidia.com/gpu": 41, "amd.com/gpu": 3}


@pytest.mark.parametrize("profile", DEMO["profiles"], ids=lambda profile: profile["name"])
def test_each_profile_of_the_demo_finds_nodes_it_can_use(profile: dict) -> None:
    fitting = [node for node in nodes_of() if profile["node_selector"].items() <= node["metadata"]["labels"].items()]
    assert fitting
    tolerated = {toleration["key"] for toleration in profile["tolerations"]}
    for node in fitting:
        assert node["metadata"]["labels"]["flexinfer.ai/gpu.arch"] == profile["architecture"]
        assert {taint["key"] for taint in node["spec"]["taints"]} <= tolerated
        assert int(node["status"]["allocatable"][profile["resource_name"]]) > 0
    tested = {cell["tested_on_node"] for cell in profile["cells"] if "tested_on_node" in cell}
    assert tested <= {node["metadata"]["name"] for node in fitting}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("groups: [", "must be YAML"),
        ("nodes: []", "a list `groups`"),
        ("- a", "a list `groups`"),
        ("groups:\n  - {name: a, count: 2}", "group a: .*resources"),
        ("groups:\n  - {name: a, count: two, resources: {cpu: 1}}", "group a: "),
        ("groups:\n  - {count: 1, resources: {cpu: 1}}", "group 1: .*name"),
        ("groups:\n  - {name: a, count: 1, resources: [cpu]}", "group a: "),
        ("groups: [a]", "group 1: "),
    ],
)
def test_a_mistake_in_the_file_names_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    with pytest.raises(RuntimeError, match=says):
        nodes_of(path)


def test_numbers_and_truths_in_labels_become_text(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("groups:\n  - {name: a, count: 1, labels: {b: 8}, resources: {nvidia.com/gpu: 2}}")
    (node,) = nodes_of(path)
    assert node["metadata"]["labels"]["b"] == "8"
    assert node["status"]["allocatable"] == {"nvidia.com/gpu": "2"}


@pytest.mark.cluster
def test_the_cluster_follows_the_file(admin: Api) -> None:
    nodes = nodes_of()
    changed = [node for node in nodes if node["metadata"]["name"] != "h100-5"]
    changed[0]["metadata"]["labels"].pop("flexinfer.ai/gpu.vram")
    changed[0]["status"]["allocatable"].pop("nvidia.com/gpu")
    changed[0]["status"]["capacity"].pop("nvidia.com/gpu")
    set_nodes(admin, changed)
    found = {node["metadata"]["name"]: node for node in admin.items("v1", "Node")}
    assert "h100-5" not in found
    assert "flexinfer.ai/gpu.vram" not in found["h100-1"]["metadata"]["labels"]
    assert "nvidia.com/gpu" not in found["h100-1"]["status"]["allocatable"]
    set_nodes(admin, nodes_of())
    back = eventually(lambda: (node := admin.get("/api/v1/nodes/h100-5")) and condition(node, "Ready") == "True" and node)
    assert back["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    eventually(lambda: [taint["key"] for taint in admin.get("/api/v1/nodes/h100-5")["spec"]["taints"]] == ["nvidia.com/gpu"])
    assert admin.get("/api/v1/nodes/h100-1")["status"]["allocatable"]["nvidia.com/gpu"] == "8"


@pytest.mark.cluster
def test_c09_a_withdrawn_device_shows_in_allocatable_and_stays_so(admin: Api) -> None:
    set_devices(admin, "h100-2", "nvidia.com/gpu", allocatable=7)
    node = admin.get("/api/v1/nodes/h100-2")
    assert node is not None
    assert (node["status"]["capacity"]["nvidia.com/gpu"], node["status"]["allocatable"]["nvidia.com/gpu"]) == ("8", "7")
    assert condition(node, "Ready") == "True"
