"""Which kinds the observer watches. Upper floors register theirs in ``AppConfig.ready``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """As in a manifest: ``apps/v1``, ``Deployment``."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


PODS = WatchedKind("v1", "Pod")
NODES = WatchedKind("v1", "Node")

_registered: dict[WatchedKind, None] = {}


def watch(api_version: str, kind: str) -> None:
    """Watch this kind too, where a cluster has it; its objects are stored raw and their owners' loops nudged."""
    _registered[WatchedKind(api_version, kind)] = None


def watched() -> tuple[WatchedKind, ...]:
    """Nodes before pods: an interval takes its profile from the node."""
    return (NODES, PODS, *(kind for kind in _registered if kind not in (NODES, PODS)))
