"""What every serving engine is: a name, the kinds it needs, and a pure function from a spec to cluster objects.

Adding one = a module here, a line in ``registry.py``, a golden file under tests/models_app/engines/goldens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from models_app.domain.drain import DrainBudget, drain_problem
from models_app.domain.names import object_name_problem
from models_app.domain.payload import image_problem
from models_app.domain.replicas import ReplicaRange, ReplicasPlan

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a spec or a manifest breaks. ``field`` is its path, such as ``spec.gpu.count``."""

    field: str
    text: str


class RefusedManifest(Exception):
    """What was rendered breaks a rule, so it is not sent; ``problems`` name each field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.text}" for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """One deployment at one revision, ready to render. ``labels`` mark the objects and the pod template alike.

    ``cpu``/``memory`` are Kubernetes quantities a replica; ``vram_bytes`` as its author stated it, None = not stated.
    ``model_id`` is the raw id for an annotation; ``served_name`` is what callers send. ``devices`` 0 means CPU only.
    """

    served_name: str
    object_name: str
    namespace: str
    labels: Mapping[str, str]
    model_id: str
    image: str
    backend: str
    model_format: str
    source: str
    source_revision: str = ""
    source_file: str = ""
    vendor: str = ""
    resource_name: str = ""
    devices: int = 1
    replicas: ReplicaRange
    replicas_plan: ReplicasPlan
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cpu: str = "4"
    memory: str = "16Gi"
    vram_bytes: int | None = None
    context_length: int | None = None
    arguments: Sequence[str] = ()
    drain: DrainBudget = field(default_factory=DrainBudget)
    model_annotation: str = "slipway/model-id"


class Engine(Protocol):
    """``main`` is (api version, kind) of the object that carries the state; ``kinds`` are all it applies, main one first.

    ``operator`` names the operator that must be installed, "" when Kubernetes itself suffices.
    """

    name: str
    label: str
    operator: str
    backends: tuple[str, ...]
    main: tuple[str, str]
    kinds: tuple[tuple[str, str], ...]

    def name_limit(self, namespace: str) -> int:
        """Characters that an object name may have in ``namespace`` (C23)."""

    def pod_selector(self, *, deployment_id: str, object_name: str) -> str:
        """The label selector that finds the pods of a deployment in its namespace, whoever makes them."""

    def spec_problems(self, spec: EngineSpec) -> list[Problem]:
        """Rules of this engine that ``spec`` breaks, by the field of the request they are about."""

    def render(self, spec: EngineSpec) -> list[Manifest]:
        """The objects, main one first, without Slipway's generation stamps. Pure: equal spec, equal bytes."""

    def manifest_problems(self, manifest: Manifest) -> list[Problem]:
        """Rules that the API server or the operator would enforce on ``manifest``, checked before anything is sent."""


def rendered(engine: Engine, spec: EngineSpec) -> list[Manifest]:
    """The engine's objects, checked; RefusedManifest when any breaks a rule, so that none of them is sent."""
    manifests = engine.render(spec)
    problems = [
        problem for manifest in manifests for problem in [*_object_problems(manifest), *engine.manifest_problems(manifest)]
    ]
    if problems:
        raise RefusedManifest(problems)
    return manifests


def _object_problems(manifest: Manifest) -> list[Problem]:
    """What holds for every object that Slipway applies."""
    problems = []
    metadata = manifest["metadata"]
    for key, value in metadata.get("labels", {}).items():
        if len(value) > 63:
            problems.append(Problem(f"metadata.labels[{key}]", f"a label value has at most 63 characters, not {len(value)}"))
    if not metadata.get("namespace"):
        problems.append(Problem("metadata.namespace", "an object of a project lives in its namespace"))
    return problems


def name_problems(target: Any, manifest: Manifest) -> list[Problem]:
    """The name's own rule for ``target`` (a ``domain.names.Target``)."""
    metadata = manifest["metadata"]
    text = object_name_problem(metadata["name"], target, namespace=metadata["namespace"])
    return [Problem("metadata.name", text)] if text else []


def pod_problems(template: Mapping[str, Any], *, drain: int, path: str = "spec.template") -> list[Problem]:
    """Rules of a pod template: images by digest (D7), the grace above preStop + ``drain`` seconds (G5, C44)."""
    problems = []
    spec = template["spec"]
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    for index, container in enumerate(containers):
        text = image_problem(container["image"]) or ("" if container["image"] else "no image")
        if text:
            problems.append(Problem(f"{path}.spec.containers[{index}].image", text))
    text = drain_problem(
        prestop=max((prestop_seconds(container) for container in spec["containers"]), default=0),
        drain=drain,
        grace=int(spec.get("terminationGracePeriodSeconds", 30)),
    )
    if text:
        problems.append(Problem(f"{path}.spec.terminationGracePeriodSeconds", text))
    return problems


def prestop_seconds(container: Mapping[str, Any]) -> int:
    """How long the container's preStop hook sleeps: the native action, or ``sleep <n>``; 0 without one."""
    hook = container.get("lifecycle", {}).get("preStop", {})
    if "sleep" in hook:
        return int(hook["sleep"]["seconds"])
    command = hook.get("exec", {}).get("command", ())
    if len(command) == 2 and command[0].endswith("sleep") and command[1].isdigit():
        return int(command[1])
    return 0
