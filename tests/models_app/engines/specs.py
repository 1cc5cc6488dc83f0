"""Engine specs that the engine tests and their golden files start from."""

from __future__ import annotations

import hashlib
from typing import Any

from models_app.domain.replicas import ReplicaRange, ReplicasPlan
from models_app.engines.base import EngineSpec


def image_of(name: str) -> str:
    """``registry.invalid/<name>`` pinned by the SHA-256 of its name, as in the demo."""
    full = f"registry.invalid/{name}"
    return f"{full}@sha256:{hashlib.sha256(full.encode()).hexdigest()}"


def make_spec(**changes: Any) -> EngineSpec:
    """One llama.cpp replica on one H100."""
    return EngineSpec(
        **{
            "served_name": "qwen3-8b",
            "object_name": "qwen3-8b-abc123",
            "namespace": "sw-north-lab-speech",
            "labels": {
                "slipway/managed": "true",
                "slipway/kind": "deployment",
                "slipway/id": "dep_00000000000000abc123",
                "slipway/project": "prj_00000000000000000001",
            },
            "model_id": "Qwen/Qwen3-8B-GGUF",
            "image": image_of("llamacpp-cuda"),
            "backend": "llamacpp",
            "model_format": "gguf",
            "source": "hf://Qwen/Qwen3-8B-GGUF",
            "source_file": "Qwen3-8B-Q4_K_M.gguf",
            "vendor": "nvidia",
            "resource_name": "nvidia.com/gpu",
            "devices": 1,
            "replicas": ReplicaRange(1, 1),
            "replicas_plan": ReplicasPlan(1),
            "node_selector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "context_length": 8192,
            **changes,
        }
    )


SPECS = {
    "plain-llamacpp": ("plain", make_spec()),
    "plain-vllm-two-devices": (
        "plain",
        make_spec(
            image=image_of("vllm-cuda"),
            backend="vllm",
            model_format="safetensors",
            source="hf://Qwen/Qwen3-32B",
            model_id="Qwen/Qwen3-32B",
            source_file="",
            source_revision="9216db5781bf21249d130ec9da846c4624c16137",
            devices=2,
            replicas=ReplicaRange(2, 2),
            replicas_plan=ReplicasPlan(2),
            cpu="8",
            memory="64Gi",
            arguments=("--enable-prefix-caching",),
        ),
    ),
    "plain-autoscaled-volume": (
        "plain",
        make_spec(
            image=image_of("llamacpp-rocm"),
            source="pvc://models/qwen3/8b",
            model_id="models/qwen3/8b",
            source_file="q4.gguf",
            vendor="amd",
            resource_name="amd.com/gpu",
            node_selector={"amd.com/gpu.product-name": "AMD_Radeon_RX_7900_XTX"},
            tolerations=[{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            environment={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"},
            replicas=ReplicaRange(1, 3),
            replicas_plan=ReplicasPlan(None),
        ),
    ),
    "plain-cpu": (
        "plain",
        make_spec(devices=0, vendor="", resource_name="", node_selector={}, tolerations=[], context_length=None),
    ),
    "flexinfer-amd": (
        "flexinfer",
        make_spec(
            image=image_of("llamacpp-rocm"),
            vendor="amd",
            resource_name="amd.com/gpu",
            node_selector={"flexinfer.ai/gpu.arch": "gfx1100"},
            tolerations=[{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            vram_bytes=7200 * 2**20,
        ),
    ),
    "flexinfer-volume-idle": (
        "flexinfer",
        make_spec(
            source="pvc://models/qwen3-8b",
            model_id="models/qwen3-8b",
            source_file="q4.gguf",
            replicas=ReplicaRange(0, 1),
            replicas_plan=ReplicasPlan(0),
        ),
    ),
}
