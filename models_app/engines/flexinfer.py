"""FlexInfer: one ``Model`` (ai.flexinfer/v1alpha2); its operator turns it into pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from models_app.domain.names import Target, limit_of
from models_app.domain.sources import HubSource, parsed_source
from models_app.engines.base import EngineSpec, Manifest, Problem, name_problems

_VENDORS = ("auto", "nvidia", "amd", "cpu")
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915")
_DIGEST = re.compile(r"(sha256:)?[a-f0-9]{64}")
_VENDOR_SELECTOR = "node.flexstack.io/gpu-vendor"
_CLAIM_STRATEGIES = ("SharedPVC", "Local", "None")


class FlexInferEngine:
    """A ``Model``; replicas stay the operator's, from ``minReplicas`` on. Environment defaults come from its GPUProfile."""

    name = "flexinfer"
    label = "FlexInfer Model"
    operator = "FlexInfer"
    backends: tuple[str, ...] = ("llamacpp", "vllm")
    main: tuple[str, str] = ("ai.flexinfer/v1alpha2", "Model")
    kinds: tuple[tuple[str, str], ...] = (("ai.flexinfer/v1alpha2", "Model"),)

    def name_limit(self, namespace: str) -> int:
        """The operator's Service has the Model's name."""
        return limit_of(Target.FLEXINFER_MODEL, namespace=namespace)

    def pod_selector(self, *, deployment_id: str, object_name: str) -> str:
        """The operator labels its pods with the Model's name."""
        return f"flexinfer.ai/model={object_name}"

    def spec_problems(self, spec: EngineSpec) -> list[Problem]:
        """What a Model cannot say, by the request's field."""
        problems = []
        if spec.arguments:
            problems.append(Problem("arguments", "A FlexInfer Model takes no server arguments: leave them empty."))
        if spec.replicas.maximum > 1 and spec.replicas.maximum != spec.replicas.minimum:
            problems.append(Problem("replicas_max", "A FlexInfer Model has a minimum only: set both alike."))
        if spec.replicas.minimum > 10:
            problems.append(Problem("replicas_min", "A FlexInfer Model has 0 to 10 replicas."))
        if spec.devices > 8:
            problems.append(Problem("devices_per_replica", "A FlexInfer Model has 1 to 8 devices."))
        if spec.vendor not in _VENDORS:
            problems.append(Problem("profile", f"FlexInfer knows the vendors {', '.join(_VENDORS)}, not {spec.vendor}."))
        if spec.backend == "llamacpp" and isinstance(parsed_source(spec.source), HubSource) and not spec.source_file:
            problems.append(Problem("source_file", "Name the GGUF file in the repository, such as model-Q4_K_M.gguf."))
        return problems

    def render(self, spec: EngineSpec) -> list[Manifest]:
        """One Model."""
        image, _, digest = spec.image.partition("@")
        body: dict[str, Any] = {
            "backend": spec.backend,
            "source": _source(spec),
            "image": image,
            "imageDigest": digest,
            "gpu": _gpu(spec),
            "resources": {"requests": {"cpu": spec.cpu, "memory": spec.memory}, "limits": {"memory": spec.memory}},
            "serverless": {"enabled": spec.replicas.minimum == 0, "minReplicas": spec.replicas.minimum},
        }
        config = _config(spec)
        if config:
            body["config"] = config
        if spec.source.startswith("pvc://"):
            body["cache"] = {"strategy": "SharedPVC"}
        if spec.node_selector:
            body["nodeSelector"] = dict(spec.node_selector)
        if spec.tolerations:
            body["tolerations"] = [dict(toleration) for toleration in spec.tolerations]
        metadata = {
            "name": spec.object_name,
            "namespace": spec.namespace,
            "labels": dict(spec.labels),
            "annotations": {spec.model_annotation: spec.model_id},
        }
        body["litellm"] = {"servedModelName": spec.served_name}
        return [{"apiVersion": self.main[0], "kind": self.main[1], "metadata": metadata, "spec": body}]

    def manifest_problems(self, manifest: Manifest) -> list[Problem]:
        """The CRD's own rules (C24), and the operator's where the CRD is silent."""
        return [*name_problems(Target.FLEXINFER_MODEL, manifest), *model_problems(manifest["spec"])]


def model_problems(spec: Mapping[str, Any]) -> list[Problem]:
    """Every rule of case C24 that a Model's ``spec`` breaks, with the field named."""
    problems = [*_gpu_problems(spec.get("gpu", {})), *_resource_problems(spec.get("resources", {}))]
    problems += _range(spec.get("serverless", {}), "minReplicas", 0, 10, "spec.serverless")
    labels = spec.get("serviceLabels", ())
    if len(labels) > 10:
        problems.append(Problem("spec.serviceLabels", f"at most 10, not {len(labels)}"))
    strategy = spec.get("cache", {}).get("strategy", "")
    if spec.get("source", "").startswith("pvc://") and strategy and strategy != "SharedPVC":
        text = f"a pvc:// source is served from SharedPVC, not {strategy}"
        problems.append(Problem("spec.cache.strategy", text))
    digest = spec.get("imageDigest", "")
    if not _DIGEST.fullmatch(digest):
        problems.append(Problem("spec.imageDigest", "the image is pinned: sha256:<64 hex digits> (D7)"))
    vendor = spec.get("gpu", {}).get("vendor", "auto")
    selected = spec.get("nodeSelector", {}).get(_VENDOR_SELECTOR)
    if selected is not None and vendor != "auto" and selected != vendor:
        problems.append(
            Problem(f"spec.nodeSelector[{_VENDOR_SELECTOR}]", f"must be the gpu.vendor {vendor}, not {selected}")
        )
    return problems


def _gpu_problems(gpu: Mapping[str, Any]) -> list[Problem]:
    problems = [*_range(gpu, "count", 1, 8, "spec.gpu"), *_range(gpu, "priority", 0, 1000, "spec.gpu")]
    vendor = gpu.get("vendor", "auto")
    if vendor not in _VENDORS:
        problems.append(Problem("spec.gpu.vendor", f"one of {', '.join(_VENDORS)}, not {vendor}"))
    if vendor == "cpu":
        extra = [name for name in ("count", "vramEstimateMB", "shared") if gpu.get(name)]
        problems += [Problem(f"spec.gpu.{name}", "is left out when the vendor is cpu") for name in extra]
    return problems


def _resource_problems(resources: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(f"spec.resources.{part}[{name}]", "GPUs are asked for under spec.gpu only")
        for part in ("limits", "requests")
        for name in _GPU_RESOURCES
        if name in resources.get(part, {})
    ]


def _range(values: Mapping[str, Any], name: str, low: int, top: int, path: str) -> list[Problem]:
    if name in values and not low <= values[name] <= top:
        return [Problem(f"{path}.{name}", f"{low} to {top}, not {values[name]}")]
    return []


def _source(spec: EngineSpec) -> str:
    """FlexInfer writes the hub's scheme in capitals."""
    source = parsed_source(spec.source)
    return f"HF://{source.repository}" if isinstance(source, HubSource) else spec.source


def _gpu(spec: EngineSpec) -> dict[str, Any]:
    if not spec.devices:
        return {"vendor": "cpu"}
    gpu: dict[str, Any] = {"vendor": spec.vendor, "count": spec.devices}
    if spec.vram_bytes is not None:
        gpu["vramEstimateMB"] = -(-spec.vram_bytes // 2**20)
    return gpu


def _config(spec: EngineSpec) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if spec.source_file:
        config["ggufFile"] = spec.source_file
    if spec.context_length is not None:
        config["contextSize"] = spec.context_length
    return config
