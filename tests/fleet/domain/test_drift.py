"""C28 and D2: the same meaning is no drift; another meaning is, with its path."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.drift import drift

Json = dict[str, Any]


def deployment(**container: Any) -> Json:
    body = {
        "name": "engine",
        "image": "registry.invalid/llama@sha256:" + "a" * 64,
        "args": ["--host", "0.0.0.0", "--alias", "m"],
        "env": [
            {"name": "HOME", "value": "/data"},
            {"name": "CACHE", "value": "$(HOME)/cache"},
            {"name": "MODE", "value": "x"},
        ],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "500m", "memory": "1000M"}, "limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "cache", "mountPath": "/data"}],
        "securityContext": {"allowPrivilegeEscalation": False},
        **container,
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "cache", "emptyDir": {}}]
    pod = {"containers": [body], "volumes": volumes, "nodeSelector": {"gpu": "h100"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m", "namespace": "n", "labels": {"a": "b"}, "annotations": {"slipway/generation": "3"}},
        "spec": {"selector": {"matchLabels": {"app": "m"}}, "template": {"metadata": {"labels": {"app": "m"}}, "spec": pod}},
    }


def as_served(manifest: Json) -> Json:
    """What the API server makes of it: defaults, canonical quantities, its own metadata."""
    live = copy.deepcopy(manifest)
    live["metadata"] |= {"uid": "u", "resourceVersion": "77", "generation": 4, "creationTimestamp": "2026-12-01T00:00:00Z"}
    live["metadata"]["annotations"] = {"slipway/generation": "9", "deployment.kubernetes.io/revision": "1"}
    live["spec"] |= {"progressDeadlineSeconds": 600, "replicas": 3, "revisionHistoryLimit": 10}
    pod = live["spec"]["template"]["spec"]
    pod |= {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler"}
    container = pod["containers"][0]
    container |= {"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"}
    container["ports"][0]["protocol"] = "TCP"
    container["resources"] = {
        "requests": {"cpu": "0.5", "memory": "1G", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    live["status"] = {"readyReplicas": 3}
    return live


def container_of(live: Json) -> Json:
    container: Json = live["spec"]["template"]["spec"]["containers"][0]
    return container


def paths(desired: Json, live: Json) -> list[str]:
    return [difference.path for difference in drift(desired, live)]


def test_c28_defaults_and_canonical_quantities_are_no_drift() -> None:
    assert drift(deployment(), as_served(deployment())) == ()


@pytest.mark.parametrize(
    ("wanted", "found"), [("500m", "0.5"), ("1000M", "1G"), ("12000m", "12"), ("1Gi", "1073741824"), ("2", 2), ("1e3", "1k")]
)
@pytest.mark.parametrize("place", ["requests", "limits"])
def test_c28_quantities_are_numbers(wanted: str, found: object, place: str) -> None:
    assert drift({"resources": {place: {"cpu": wanted}}}, {"resources": {place: {"cpu": found}}}) == ()
    assert drift({"spec": {"hard": {"cpu": wanted}}}, {"spec": {"hard": {"cpu": found}}}) == ()


def test_c28_text_that_looks_like_a_quantity_is_text_elsewhere() -> None:
    assert paths(deployment(args=["--ctx", "1000m"]), deployment(args=["--ctx", "1"])) != []
    one = deployment(env=[{"name": "LIMIT", "value": "1000M"}])
    assert paths(one, deployment(env=[{"name": "LIMIT", "value": "1G"}])) == [
        ".spec.template.spec.containers[engine].env[LIMIT].value"
    ]


def test_a_changed_quantity_is_drift_with_its_path() -> None:
    live = as_served(deployment())
    container_of(live)["resources"]["requests"]["cpu"] = "2"
    assert paths(deployment(), live) == [".spec.template.spec.containers[engine].resources.requests.cpu"]


def test_a_changed_image_names_both() -> None:
    live = as_served(deployment())
    container_of(live)["image"] = "evil"
    (difference,) = drift(deployment(), live)
    assert difference.found == "evil"
    assert "image" in str(difference)


def test_args_order_counts() -> None:
    live = as_served(deployment())
    container_of(live)["args"] = ["--alias", "m", "--host", "0.0.0.0"]
    assert paths(deployment(), live) != []


def test_env_order_counts_only_where_a_later_entry_refers_to_an_earlier_one() -> None:
    live = as_served(deployment())
    home, cache, mode = container_of(live)["env"]
    container_of(live)["env"] = [mode, home, cache]
    assert drift(deployment(), live) == ()
    container_of(live)["env"] = [mode, cache, home]
    assert paths(deployment(), live) == [".spec.template.spec.containers[engine].env"]


def test_what_a_webhook_added_is_no_drift() -> None:
    live = as_served(deployment())
    container_of(live)["env"].append({"name": "INJECTED", "value": "1"})
    live["spec"]["template"]["spec"]["containers"].insert(0, {"name": "sidecar", "image": "x"})
    live["spec"]["template"]["spec"]["volumes"].append({"name": "token", "projected": {}})
    assert drift(deployment(), live) == ()


def test_what_somebody_removed_is_drift() -> None:
    live = as_served(deployment())
    container_of(live)["env"].pop()
    live["metadata"]["labels"] = {}
    del container_of(live)["securityContext"]["allowPrivilegeEscalation"]
    assert paths(deployment(), live) == [
        ".metadata.labels.a",
        ".spec.template.spec.containers[engine].env[MODE]",
        ".spec.template.spec.containers[engine].securityContext.allowPrivilegeEscalation",
    ]


def test_c20_replicas_that_the_manifest_leaves_out_are_an_autoscalers() -> None:
    live = as_served(deployment())
    live["spec"]["replicas"] = 9
    assert drift(deployment(), live) == ()


@pytest.mark.parametrize("where", ["nodeSelector", "matchLabels"])
def test_an_added_key_in_a_selector_changes_its_meaning(where: str) -> None:
    live = as_served(deployment())
    if where == "nodeSelector":
        live["spec"]["template"]["spec"]["nodeSelector"]["extra"] = "1"
    else:
        live["spec"]["selector"]["matchLabels"]["extra"] = "1"
    assert [path.rsplit(".", 1)[1] for path in paths(deployment(), live)] == ["extra"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"a": None}, {}),
        ({"a": ""}, {}),
        ({"a": []}, {}),
        ({"a": {}}, {}),
        ({"hostNetwork": False}, {}),
        ({"minReadySeconds": 0}, {}),
        ({"metadata": {"uid": "1", "resourceVersion": "2"}}, {"metadata": {"uid": "x", "resourceVersion": "y"}}),
    ],
)
def test_what_the_server_leaves_out(wanted: Json, found: Json) -> None:
    assert drift(wanted, found) == ()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"a": 0}, {}),
        ({"allowPrivilegeEscalation": False}, {}),
        ({"replicas": 0}, {}),
        ({"a": False}, {"a": 0}),
        ({"a": True}, {"a": "true"}),
        ({"a": "1"}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": []}),
        ({"emptyDir": {}}, {}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": [1]}, {"a": [1, 2]}),
    ],
)
def test_what_is_another_meaning(wanted: Json, found: Json) -> None:
    assert len(drift(wanted, found)) == 1


def test_an_opened_network_policy_is_drift() -> None:
    policy = {"spec": {"podSelector": {}, "ingress": [{"ports": [{"protocol": "TCP", "port": "http"}]}]}}
    live = copy.deepcopy(policy)
    live["spec"]["ingress"][0]["ports"].append({"protocol": "TCP", "port": 22})  # type: ignore[index]
    assert paths(policy, live) == [".spec.ingress[0].ports"]
    live = copy.deepcopy(policy)
    live["spec"]["podSelector"] = {"matchLabels": {"app": "x"}}
    live["spec"]["ingress"].append({})  # type: ignore[index, union-attr]
    assert ".spec.ingress" in paths(policy, live)


def test_init_containers_run_in_their_order() -> None:
    wanted = {"initContainers": [{"name": "a"}, {"name": "b"}]}
    assert drift(wanted, {"initContainers": [{"name": "a"}, {"name": "x"}, {"name": "b"}]}) == ()
    assert paths(wanted, {"initContainers": [{"name": "b"}, {"name": "a"}]}) == [".initContainers"]


_scalars = st.one_of(st.booleans(), st.integers(-5, 5), st.text("abm1GM", max_size=4))
_trees = st.recursive(
    _scalars,
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(
            st.sampled_from(["spec", "env", "requests", "name", "ports", "x", "args", "selector"]), below, max_size=4
        ),
    ),
    max_leaves=20,
)
_manifests = st.dictionaries(st.sampled_from(["spec", "metadata", "data"]), _trees, max_size=3)


@given(_manifests)
def test_nothing_drifts_from_itself(tree: Json) -> None:
    assert drift(tree, copy.deepcopy(tree)) == ()


@given(_manifests, _manifests)
def test_any_two_trees_are_compared_without_an_error(wanted: Json, found: Json) -> None:
    drift(wanted, found)
