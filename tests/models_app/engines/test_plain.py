from __future__ import annotations

from typing import Any

import pytest

from models_app.domain.drain import DrainBudget
from models_app.domain.replicas import ReplicaRange, ReplicasPlan
from models_app.engines.base import RefusedManifest, prestop_seconds, rendered
from models_app.engines.plain import PlainEngine
from tests.models_app.engines.specs import image_of, make_spec

ENGINE = PlainEngine()


def deployment(**changes: Any) -> dict[str, Any]:
    return rendered(ENGINE, make_spec(**changes))[0]


def server(**changes: Any) -> dict[str, Any]:
    container: dict[str, Any] = deployment(**changes)["spec"]["template"]["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("maximum", [1, 2, 5, 40])
def test_c22_a_deployment_with_devices_never_surges(maximum: int) -> None:
    strategy = deployment(replicas=ReplicaRange(maximum, maximum), replicas_plan=ReplicasPlan(maximum))["spec"]["strategy"]
    if maximum == 1:
        assert strategy == {"type": "Recreate"}
    else:
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_c22_cpu_only_keeps_the_defaults() -> None:
    assert "strategy" not in deployment(devices=0)["spec"]


@pytest.mark.parametrize(
    "strategy",
    [
        {},
        {"type": "RollingUpdate"},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
    ],
)
def test_c22_the_check_refuses_any_strategy_that_would_deadlock(strategy: dict[str, Any]) -> None:
    manifest = deployment()
    manifest["spec"]["strategy"] = strategy
    assert [problem.field for problem in ENGINE.manifest_problems(manifest)] == ["spec.strategy"]


def test_c20_the_field_is_left_out_when_the_plan_says_so() -> None:
    assert "replicas" not in deployment(replicas=ReplicaRange(1, 3), replicas_plan=ReplicasPlan(None))["spec"]
    assert deployment(replicas_plan=ReplicasPlan(0))["spec"]["replicas"] == 0


def test_an_autoscaler_comes_with_a_range_only() -> None:
    ranged = rendered(ENGINE, make_spec(replicas=ReplicaRange(2, 3), replicas_plan=ReplicasPlan(None)))
    assert [item["kind"] for item in ranged] == ["Deployment", "Service", "HorizontalPodAutoscaler"]
    assert (ranged[2]["spec"]["minReplicas"], ranged[2]["spec"]["maxReplicas"]) == (2, 3)
    for fixed in (ReplicaRange(2, 2), ReplicaRange(0, 3)):
        kinds = [
            item["kind"] for item in rendered(ENGINE, make_spec(replicas=fixed, replicas_plan=ReplicasPlan(fixed.minimum)))
        ]
        assert kinds == ["Deployment", "Service"]


def test_c44_the_grace_outlasts_prestop_and_drain() -> None:
    pod = deployment(drain=DrainBudget(prestop=15, drain=600, margin=45))["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 660
    assert prestop_seconds(pod["containers"][0]) == 15


@pytest.mark.parametrize("grace", [1, 30, 600, 615])
def test_c44_the_manifest_check_refuses_a_grace_that_cuts_accepted_work(grace: int) -> None:
    manifest = deployment(drain=DrainBudget(prestop=15, drain=600))
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = grace
    problems = ENGINE.manifest_problems(manifest)
    assert [problem.field for problem in problems] == ["spec.template.spec.terminationGracePeriodSeconds"]
    assert "15 s + drain 600 s" in problems[0].text


def test_c44_a_grace_one_second_above_the_sum_is_taken() -> None:
    manifest = deployment(drain=DrainBudget(prestop=15, drain=600))
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 616
    assert ENGINE.manifest_problems(manifest) == []


@pytest.mark.parametrize("hook", [{}, {"exec": {"command": ["true"]}}])
def test_c44_no_prestop_is_refused(hook: dict[str, Any]) -> None:
    manifest = deployment()
    manifest["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = {"preStop": hook}
    assert any("preStop" in problem.text for problem in ENGINE.manifest_problems(manifest))


@pytest.mark.parametrize("image", ["", "registry.invalid/x:latest", "registry.invalid/x", "x@sha256:abc"])
def test_an_image_that_is_not_pinned_is_not_sent(image: str) -> None:
    with pytest.raises(RefusedManifest, match=r"containers\[0\].image"):
        rendered(ENGINE, make_spec(image=image))


@pytest.mark.parametrize("name", ["a" * 64, "Big", "1st", "a.b", "-a", "a-"])
def test_c23_an_object_name_that_does_not_fit_is_refused_here(name: str) -> None:
    with pytest.raises(RefusedManifest, match=r"metadata.name"):
        rendered(ENGINE, make_spec(object_name=name))


def test_pods_pass_the_restricted_profile() -> None:
    pod = deployment()["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    context = pod["containers"][0]["securityContext"]
    assert context == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]} <= {"emptyDir", "persistentVolumeClaim"}


def test_the_raw_model_id_is_an_annotation_and_no_label() -> None:
    for manifest in rendered(ENGINE, make_spec(model_id="acme/Llama-3.2-3B")):
        assert manifest["metadata"]["annotations"]["slipway/model-id"] == "acme/Llama-3.2-3B"
        assert "acme/Llama-3.2-3B" not in manifest["metadata"]["labels"].values()


def test_devices_are_asked_for_in_requests_and_limits_alike() -> None:
    resources = server(devices=4, resource_name="amd.com/gpu")["resources"]
    assert resources["requests"]["amd.com/gpu"] == resources["limits"]["amd.com/gpu"] == "4"
    assert set(server(devices=0)["resources"]["limits"]) == {"memory"}


def test_vllm_spreads_over_the_devices_of_a_replica() -> None:
    vllm = {"backend": "vllm", "model_format": "safetensors", "source": "hf://a/b", "source_file": ""}
    assert "--tensor-parallel-size=4" in server(devices=4, **vllm)["args"]
    assert not any("tensor-parallel" in argument for argument in server(devices=1, **vllm)["args"])
    assert server(**vllm)["command"] == ["vllm", "serve"]
    assert server(**vllm)["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]


def test_arguments_are_not_taken_for_variables_of_the_container() -> None:
    assert server(arguments=("--chat-template=$(cat x)",))["args"][-1] == "--chat-template=$$(cat x)"


@pytest.mark.parametrize("argument", ["--port=1", "--host 0.0.0.0", "--alias=x", "-m", "--api_key=x", "--n-gpu-layers=1"])
def test_arguments_may_not_set_what_slipway_sets(argument: str) -> None:
    problems = ENGINE.spec_problems(make_spec(arguments=(argument,)))
    assert [problem.field for problem in problems] == ["arguments"]


def test_a_gguf_on_the_hub_needs_its_file() -> None:
    assert [problem.field for problem in ENGINE.spec_problems(make_spec(source_file=""))] == ["source_file"]
    assert ENGINE.spec_problems(make_spec(source="pvc://m/x.gguf", source_file="")) == []


def test_the_selector_and_the_pod_labels_are_the_same_identity() -> None:
    manifests = rendered(ENGINE, make_spec())
    pod_labels = manifests[0]["spec"]["template"]["metadata"]["labels"]
    assert manifests[0]["spec"]["selector"]["matchLabels"].items() <= pod_labels.items()
    assert manifests[1]["spec"]["selector"].items() <= pod_labels.items()


def test_environment_of_the_matrix_cell_reaches_the_pod_sorted() -> None:
    env = server(environment={"ZED": "1", "A": 2})["env"]
    assert [item["name"] for item in env] == sorted(item["name"] for item in env)
    assert {"name": "A", "value": "2"} in env


def test_all_images_in_the_tests_are_pinned_alike() -> None:
    assert image_of("x") == image_of("x") != image_of("y")
