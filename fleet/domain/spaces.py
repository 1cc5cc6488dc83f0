"""What a project has on a cluster, as objects: namespace, quota fence, limits, network policies, role binding. Pure.

The fence sums per resource name and not per profile, so it is the outer one: it carries the grants plus held surge, and
never refuses what was admitted (contract Q2). The namespace is rendered first: the others live in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.domain import stamps
from fleet.domain.stamps import Owner

SPACE_KIND = "space"
QUOTA_NAME = "slipway-fence"
GATEWAY_LABEL = "slipway/gateway"
"""A namespace that carries it (value ``true``) holds gateways: models accept calls from there only."""


@dataclass(frozen=True, slots=True)
class GrantShare:
    """One grant as the fence counts it: ``nominal`` devices while it is in force, else 0; ``held`` by open holds."""

    resource_name: str
    nominal: int
    held: int


@dataclass(frozen=True, slots=True)
class SpaceSpec:
    """``resources`` are all resource names of GPU profiles: those without a grant are fenced to 0."""

    owner: Owner
    namespace: str
    resources: tuple[str, ...]
    shares: tuple[GrantShare, ...]


def fence(shares: Iterable[GrantShare], resources: Iterable[str] = ()) -> dict[str, int]:
    """Devices per resource name: of each grant the larger of nominal and held, summed."""
    total = dict.fromkeys(sorted(resources), 0)
    for share in shares:
        total[share.resource_name] = total.get(share.resource_name, 0) + max(share.nominal, share.held)
    return total


def group_of(project_id: str) -> str:
    """The group that an identity provider or an impersonating proxy gives to a project's members."""
    return f"slipway:{project_id}"


def rendered(spec: SpaceSpec, *, generation: int, request_id: str = "") -> list[dict[str, Any]]:
    """The stamped manifests, in the order in which they are applied."""
    objects = [
        _namespace(spec),
        _quota(spec),
        _limits(spec),
        *_network_policies(spec),
        _role_binding(spec),
    ]
    return [stamps.stamped(item, owner=spec.owner, generation=generation, request_id=request_id) for item in objects]


def follows_generation(manifest: Mapping[str, Any]) -> bool:
    """Whether the object's content depends on the row: only such a one needs its generation stamped anew each time.

    The others say the same in every generation, so that an older pass can do them no harm (D4).
    """
    return bool(manifest["kind"] == "ResourceQuota")


def _namespace(spec: SpaceSpec) -> dict[str, Any]:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": spec.namespace, "labels": levels}}


def _quota(spec: SpaceSpec) -> dict[str, Any]:
    hard = {f"requests.{name}": str(devices) for name, devices in fence(spec.shares, spec.resources).items()}
    return _object(spec, "v1", "ResourceQuota", QUOTA_NAME, {"spec": {"hard": hard}})


def _limits(spec: SpaceSpec) -> dict[str, Any]:
    defaults = {
        "type": "Container",
        "defaultRequest": {"cpu": "100m", "memory": "128Mi"},
        "default": {"memory": "1Gi"},
    }
    return _object(spec, "v1", "LimitRange", "slipway-defaults", {"spec": {"limits": [defaults]}})


def _network_policies(spec: SpaceSpec) -> list[dict[str, Any]]:
    everything: dict[str, Any] = {}
    serving = {"matchLabels": {stamps.MANAGED: "true", stamps.KIND: "deployment"}}
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    gateways = [{"namespaceSelector": {"matchLabels": {GATEWAY_LABEL: "true"}}}]
    policies = {
        "slipway-deny": {"podSelector": everything, "policyTypes": ["Ingress", "Egress"]},
        "slipway-dns": {"podSelector": everything, "policyTypes": ["Egress"], "egress": [{"ports": dns}]},
        "slipway-serving": {
            "podSelector": serving,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": gateways, "ports": [{"protocol": "TCP", "port": "http"}]}],
            # Weights come from hubs, mirrors and object stores, which all speak HTTPS.
            "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
        },
    }
    return [_object(spec, "networking.k8s.io/v1", "NetworkPolicy", name, {"spec": body}) for name, body in policies.items()]


def _role_binding(spec: SpaceSpec) -> dict[str, Any]:
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group_of(spec.owner.project)}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    return _object(
        spec, "rbac.authorization.k8s.io/v1", "RoleBinding", "slipway-project", {"subjects": [group], "roleRef": role}
    )


def _object(spec: SpaceSpec, api_version: str, kind: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": spec.namespace, "labels": {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
