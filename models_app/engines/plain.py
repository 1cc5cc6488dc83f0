"""Plain Kubernetes: a Deployment of llama.cpp or vLLM, its Service, and an autoscaler when the row has a range."""

from __future__ import annotations

from typing import Any

from models_app.domain.names import Target, limit_of
from models_app.domain.sources import ClaimSource, parsed_source
from models_app.engines.base import EngineSpec, Manifest, Problem, name_problems, pod_problems
from models_app.engines.commands import (
    CACHE_FOLDER,
    MODELS_FOLDER,
    SERVERS,
    argument_problems,
    server_arguments,
)

_STARTUP_SECONDS = 1800
_SELECTOR = "slipway/id"


class PlainEngine:
    """Deployment + Service (+ HorizontalPodAutoscaler)."""

    name = "plain"
    label = "Plain Deployment"
    operator = ""
    backends: tuple[str, ...] = tuple(SERVERS)
    main: tuple[str, str] = ("apps/v1", "Deployment")
    kinds: tuple[tuple[str, str], ...] = (
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    )

    def name_limit(self, namespace: str) -> int:
        """The Service's and the pod host name's 63."""
        return limit_of(Target.DEPLOYMENT, namespace=namespace)

    def pod_selector(self, *, deployment_id: str, object_name: str) -> str:
        """The template carries Slipway's own labels."""
        return f"{_SELECTOR}={deployment_id}"

    def spec_problems(self, spec: EngineSpec) -> list[Problem]:
        """The server's own rules."""
        return argument_problems(spec)

    def render(self, spec: EngineSpec) -> list[Manifest]:
        """The Deployment first."""
        objects = [_deployment(spec), _service(spec)]
        if spec.replicas.autoscaled:
            objects.append(_autoscaler(spec))
        return objects

    def manifest_problems(self, manifest: Manifest) -> list[Problem]:
        """Name limits, pinned images, drain budget, and no surge onto cards that are taken (C22)."""
        problems = name_problems(Target.DEPLOYMENT, manifest)
        if manifest["kind"] != "Deployment":
            return problems
        template = manifest["spec"]["template"]
        drain = int(template["metadata"]["annotations"].get("slipway/drain-seconds", "0"))
        problems += pod_problems(template, drain=drain)
        if _holds_devices(template) and not _surge_free(manifest["spec"].get("strategy", {})):
            text = "a pod with devices never surges: Recreate, or maxSurge 0 with maxUnavailable 1 (C22)"
            problems.append(Problem("spec.strategy", text))
        return problems


def _metadata(spec: EngineSpec) -> dict[str, Any]:
    return {
        "name": spec.object_name,
        "namespace": spec.namespace,
        "labels": {**spec.labels, "app.kubernetes.io/name": spec.object_name, "app.kubernetes.io/managed-by": "slipway"},
        "annotations": {spec.model_annotation: spec.model_id},
    }


def _deployment(spec: EngineSpec) -> Manifest:
    body: dict[str, Any] = {
        "progressDeadlineSeconds": _STARTUP_SECONDS,
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": {_SELECTOR: spec.labels[_SELECTOR]}},
        "template": {
            "metadata": {
                "labels": {**spec.labels, "app.kubernetes.io/name": spec.object_name},
                "annotations": {
                    spec.model_annotation: spec.model_id,
                    "slipway/drain-seconds": str(spec.drain.drain),
                },
            },
            "spec": _pod(spec),
        },
    }
    if spec.replicas_plan.value is not None:
        body = {"replicas": spec.replicas_plan.value, **body}
    if spec.devices:
        body["strategy"] = _strategy(spec)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(spec), "spec": body}


def _strategy(spec: EngineSpec) -> dict[str, Any]:
    """The old pod gives its cards up before the new one asks for them (C22)."""
    if spec.replicas.maximum <= 1:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def _pod(spec: EngineSpec) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": spec.drain.grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(spec)],
        "volumes": _volumes(spec),
    }
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in spec.tolerations]
    return pod


def _container(spec: EngineSpec) -> dict[str, Any]:
    server = SERVERS[spec.backend]
    command = {"command": list(server.command)} if server.command else {}
    return {
        "name": "server",
        "image": spec.image,
        **command,
        "args": server_arguments(spec),
        "env": _environment(spec),
        "ports": [{"name": "http", "containerPort": server.port, "protocol": "TCP"}],
        "resources": _resources(spec),
        "startupProbe": {**_health(), "periodSeconds": 5, "failureThreshold": _STARTUP_SECONDS // 5},
        "readinessProbe": {**_health(), "periodSeconds": 5, "failureThreshold": 2},
        "lifecycle": {"preStop": {"sleep": {"seconds": spec.drain.prestop}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": _mounts(spec),
    }


def _health() -> dict[str, Any]:
    """Both servers answer 503 there until the weights are loaded. No liveness probe: a long load or drain is no death."""
    return {"httpGet": {"path": "/health", "port": "http"}}


def _environment(spec: EngineSpec) -> list[dict[str, str]]:
    """The matrix cell's variables over ours, by name, so that equal specs render equal bytes."""
    values = {"HOME": CACHE_FOLDER, "HF_HOME": f"{CACHE_FOLDER}/huggingface", "LLAMA_CACHE": f"{CACHE_FOLDER}/llama.cpp"}
    if spec.backend != "llamacpp":
        del values["LLAMA_CACHE"]
    values |= {name: str(value) for name, value in spec.environment.items()}
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def _resources(spec: EngineSpec) -> dict[str, Any]:
    requests = {"cpu": spec.cpu, "memory": spec.memory}
    limits = {"memory": spec.memory}
    if spec.devices:
        requests[spec.resource_name] = str(spec.devices)
        limits[spec.resource_name] = str(spec.devices)
    return {"requests": requests, "limits": limits}


def _volumes(spec: EngineSpec) -> list[dict[str, Any]]:
    """The shared memory that tensor parallelism needs, a writable cache, and the claim that holds the files."""
    volumes: list[dict[str, Any]] = [
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "cache", "emptyDir": {}},
    ]
    source = parsed_source(spec.source)
    if isinstance(source, ClaimSource):
        volumes.append({"name": "models", "persistentVolumeClaim": {"claimName": source.claim, "readOnly": True}})
    return volumes


def _mounts(spec: EngineSpec) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - the pod's own memory volume
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        {"name": "cache", "mountPath": CACHE_FOLDER},
    ]
    if isinstance(parsed_source(spec.source), ClaimSource):
        mounts.append({"name": "models", "mountPath": MODELS_FOLDER, "readOnly": True})
    return mounts


def _service(spec: EngineSpec) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(spec),
        "spec": {
            "type": "ClusterIP",
            "selector": {_SELECTOR: spec.labels[_SELECTOR]},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
        },
    }


def _autoscaler(spec: EngineSpec) -> Manifest:
    """Keeps the count within the row's range; the CPU target moves it inside, where a metrics server answers."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(spec),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": spec.object_name},
            "minReplicas": spec.replicas.minimum,
            "maxReplicas": spec.replicas.maximum,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                }
            ],
        },
    }


def _holds_devices(template: Manifest) -> bool:
    plain = {"cpu", "memory", "ephemeral-storage"}
    return any(
        not set(container.get("resources", {}).get("limits", {})) <= plain for container in template["spec"]["containers"]
    )


def _surge_free(strategy: Manifest) -> bool:
    if strategy.get("type") == "Recreate":
        return True
    update = strategy.get("rollingUpdate", {})
    return update.get("maxSurge") == 0 and update.get("maxUnavailable") not in (None, 0)
