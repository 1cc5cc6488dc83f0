"""Drift by meaning, not by text (contract D2, C28): what of a manifest does not stand in the live object.

Only what the manifest says is compared, so what the server defaults or others add is no drift. Quantities are compared as
numbers. Keyed lists (containers, env, volumes …) are compared by key; their order counts for init containers, and in env
only where a later entry refers to an earlier one. Other lists (args, command, rules) are compared as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.domain.stamps import GENERATION, REQUEST_ID, SPEC_HASH
from portal.kernel.quantities import same


@dataclass(frozen=True, slots=True)
class Difference:
    """``path`` such as ``.spec.template.spec.containers[engine].image``; ``found`` None = nothing there."""

    path: str
    wanted: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: wanted {self.wanted!r}, found {self.found!r}"


_STAMPS = frozenset({GENERATION, SPEC_HASH, REQUEST_ID})
_FENCES = frozenset({".metadata.uid", ".metadata.resourceVersion", ".metadata.managedFields"})
_QUANTITY_MAPS = frozenset({"requests", "limits", "hard", "default", "defaultRequest", "max", "min", "capacity", "overhead"})
_QUANTITIES = frozenset({"sizeLimit", "divisor"})
_WHOLE_MAPS = frozenset({"nodeSelector", "matchLabels", "selector"})
"""Maps that are one field to the API server: an added key changes their meaning."""

_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "env": (("name",),),
    "volumes": (("name",),),
    "volumeMounts": (("mountPath",),),
    "imagePullSecrets": (("name",),),
    "hostAliases": (("ip",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
}
_RULES = re.compile(r"\.(ingress|egress)\[")
_ZERO = frozenset({"minReadySeconds", "initialDelaySeconds"})
_FALSE = frozenset(
    {"hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly", "publishNotReadyAddresses"}
)
"""Fields that the server drops when they are zero or false: absent means the same."""

_REFERENCE = re.compile(r"\$\(([A-Za-z_.][A-Za-z0-9_.-]*)\)")


def drift(desired: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Every difference in meaning, in the manifest's order; empty = in sync."""
    return tuple(_mapping("", "", desired, live))


def _value(path: str, key: str, wanted: Any, found: Any, *, quantity: bool) -> Iterator[Difference]:
    if found is None and _means_nothing(key, wanted):
        return
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        yield from _mapping(path, key, wanted, found)
    elif _is_list(wanted) and _is_list(found):
        yield from _list(path, key, wanted, found)
    elif isinstance(wanted, bool) or isinstance(found, bool):
        if wanted is not found:
            yield Difference(path, wanted, found)
    elif not (same(wanted, found) if quantity else wanted == found):
        yield Difference(path, wanted, found)


def _mapping(path: str, key: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Difference]:
    for name, value in wanted.items():
        below = f"{path}.{name}"
        if value is None or name in _STAMPS or below in _FENCES:
            continue
        quantity = name in _QUANTITIES or (key in _QUANTITY_MAPS and not isinstance(value, Mapping))
        yield from _value(below, name, value, found.get(name), quantity=quantity)
    if key in _WHOLE_MAPS:
        for name in found.keys() - wanted.keys():
            if not (key == "selector" and name == "matchExpressions" and not found[name]):
                yield Difference(f"{path}.{name}", None, found[name])


def _list(path: str, key: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[Difference]:
    keyed = None if _RULES.search(path) else _keyed(key, wanted, found)
    if keyed is None:
        if len(wanted) != len(found):
            yield Difference(path, list(wanted), list(found))
            return
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _value(f"{path}[{index}]", "", one, other, quantity=False)
        return
    ours, theirs = keyed
    for name, item in ours.items():
        yield from _value(f"{path}[{'/'.join(name)}]", "", item, theirs.get(name), quantity=False)
    if not _order_kept(key, ours, theirs):
        yield Difference(path, ["/".join(name) for name in ours], ["/".join(name) for name in theirs])


_Keyed = dict[tuple[str, ...], Mapping[str, Any]]


def _keyed(key: str, wanted: Sequence[Any], found: Sequence[Any]) -> tuple[_Keyed, _Keyed] | None:
    """Both lists by their key; None when the list has no key, or an item or a distinct key is missing."""
    for names in _KEYS.get(key, ()):
        both = [_by_key(names, items) for items in (wanted, found)]
        if both[0] is not None and both[1] is not None:
            return both[0], both[1]
    return None


def _by_key(names: tuple[str, ...], items: Sequence[Any]) -> _Keyed | None:
    result: _Keyed = {}
    for item in items:
        if not isinstance(item, Mapping) or names[0] not in item:
            return None
        result[tuple(str(item.get(name, "TCP")) for name in names)] = item
    return result if len(result) == len(items) else None


def _order_kept(key: str, ours: _Keyed, theirs: _Keyed) -> bool:
    places = {name: index for index, name in enumerate(theirs)}
    present = [name for name in ours if name in places]
    if key == "initContainers":
        return [places[name] for name in present] == sorted(places[name] for name in present)
    if key != "env":
        return True
    before: set[str] = set()
    for name in present:
        referred = set(_REFERENCE.findall(str(ours[name].get("value") or ""))) & before
        if any(places[(other,)] > places[name] for other in referred):
            return False
        before.add(name[0])
    return True


def _means_nothing(key: str, wanted: Any) -> bool:
    """Whether the server leaves such a value out, so that nothing there is the same."""
    if isinstance(wanted, bool):
        return not wanted and key in _FALSE
    if isinstance(wanted, Mapping):
        return key != "emptyDir" and all(_means_nothing(name, value) for name, value in wanted.items())
    if isinstance(wanted, int | float):
        return wanted == 0 and key in _ZERO
    return wanted is None or wanted == "" or (_is_list(wanted) and not wanted)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
