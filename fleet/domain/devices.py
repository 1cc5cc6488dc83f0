"""How many devices a pod holds (contract K3), and what one slot of a resource is worth (K4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.domain.findings import Finding, FindingKind
from portal.kernel.quantities import QuantityError, parse

WHOLE_CARD_PPM = 1_000_000
"""gpu_equiv of a whole card, in millionths."""

MOST_DEVICES = 2_147_483_647
"""The ledger's column; a pod that asks for more is junk, and is flagged."""

_DEVICE = re.compile(
    r"nvidia\.com/(gpu(\.shared)?|mig-[0-9a-z.]+|pgpu|vgpu)"
    r"|amd\.com/(gpu|[sdqc]px_nps[0-9])"
    r"|gpu\.intel\.com/(i915|xe)|intel\.com/gpu|habana\.ai/gaudi"
)


def is_device(resource: str) -> bool:
    """Whether a resource name counts accelerators; Intel's ``_monitoring`` twin is access, not a device."""
    return _DEVICE.fullmatch(resource) is not None


def whole_devices(value: object) -> int | None:
    """A quantity as the API server wrote it ("8", 8, "1k") as a count; None when it is no whole number ≥ 0."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        number = parse(str(value))
    except QuantityError:
        return None
    return int(number) if number == int(number) and 0 <= number <= MOST_DEVICES else None


def effective_request(spec: Mapping[str, Any]) -> tuple[dict[str, int], tuple[Finding, ...]]:
    """K3: per accelerator resource, max(apps + sidecars, max over init i of (init_i + sidecars listed before i)).

    Limits stand in for requests. Resources whose total is 0 are left out; an unreadable quantity is a finding.
    """
    findings: list[Finding] = []
    apps: dict[str, int] = {}
    for container in _containers(spec, "containers"):
        _add(apps, _requested(container, findings))
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in _containers(spec, "initContainers"):
        wanted = _requested(container, findings)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, wanted)
            continue
        for resource, count in wanted.items():
            highest[resource] = max(highest.get(resource, 0), count + sidecars.get(resource, 0))
    _add(apps, sidecars)
    total = {
        resource: max(apps.get(resource, 0), highest.get(resource, 0)) for resource in sorted(apps.keys() | highest.keys())
    }
    return {resource: count for resource, count in total.items() if count}, tuple(findings)


def _containers(spec: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    found = spec.get(key)
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, Mapping))


def _requested(container: Mapping[str, Any], findings: list[Finding]) -> dict[str, int]:
    resources = container.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    named: dict[str, object] = {}
    for part in ("limits", "requests"):
        quantities = resources.get(part)
        if isinstance(quantities, Mapping):
            named.update({key: value for key, value in quantities.items() if isinstance(key, str) and is_device(key)})
    wanted = {}
    for resource, value in named.items():
        count = whole_devices(value)
        if count is None:
            findings.append(Finding(FindingKind.BAD_QUANTITY, f"{resource}: {value!r}"[:200]))
        else:
            wanted[resource] = count
    return wanted


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, count in more.items():
        total[resource] = total.get(resource, 0) + count


def slot_ppm(resource: str, labels: Mapping[str, str]) -> int | None:
    """K4: gpu_equiv of one slot of ``resource`` on a node with these labels, in millionths; None = unknown shape.

    Whole cards only are known so far: a resource that carries plain cards, on a node that neither shares nor slices them.
    """
    if resource == "nvidia.com/gpu":
        product = labels.get("nvidia.com/gpu.product", "")
        shared = labels.get("nvidia.com/gpu.replicas", "1") not in ("0", "1") or product.endswith("-SHARED")
        sliced = labels.get("nvidia.com/mig.strategy") == "single" and "-MIG-" in product
        return None if shared or sliced else WHOLE_CARD_PPM
    return WHOLE_CARD_PPM if resource in ("amd.com/gpu", "habana.ai/gaudi") else None
