"""Answers to Envoy's polls (REST xDS): a version for each answer, nothing when the node has it already.

A version is ``<when the table was read, µs>.<hash of the resources>``. Equal hashes are equal content, whichever process
answered. A process that has read less recently than the one that gave the node its version keeps quiet until it has
caught up, so that a node that polls several processes never goes back (contract G4).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from routing.domain.table import RouteTable
from routing.envoy.clusters import clusters, load_assignment
from routing.envoy.listeners import listeners
from routing.envoy.resources import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Door, Resource
from routing.envoy.routes import routes

_BEHIND_AT_MOST = timedelta(seconds=60)
"""Further ahead than this, a node's version tells of a clock that was set back, not of a table not yet read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``body`` is the JSON DiscoveryResponse."""

    version: str
    body: bytes


class Discovery:
    """What one route table has for every node: built once, asked many times."""

    def __init__(self, table: RouteTable, before: Discovery | None = None) -> None:
        """What ``before`` has of unchanged models is taken over: a change costs what changed, not what there is."""
        self._read_at = table.read_at
        self._routes = {route.deployment_id: route for route in table.routes}
        had = before._endpoints if before is not None else {}
        known = before._routes if before is not None else {}
        self._endpoints = {
            name: had[name] if known.get(name) == route else _Bundle(ENDPOINTS, [load_assignment(route)])
            for name, route in self._routes.items()
        }
        same = before is not None and known.keys() == self._routes.keys()
        self._clusters = before._clusters if before is not None and same else _Bundle(CLUSTER, clusters(table))

    def answer(self, kind: str, names: list[str], door: Door, version: str) -> Answer | None:
        """What a node that has ``version`` of ``kind`` (the word of the URL) must be told, None when nothing.

        Unknown kinds raise KeyError; a cluster that is no more has no answer (its CDS removal is on the way).
        """
        bundle = self._bundle(kind, names, door)
        if bundle is None:
            return None
        read_at, _, digest = version.partition(".")
        if digest == bundle.digest:
            return None
        if read_at.isdecimal():
            theirs = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(read_at))
            if timedelta(0) < theirs - self._read_at < _BEHIND_AT_MOST:
                return None
        stamp = (self._read_at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
        return bundle.answer(f"{stamp}.{bundle.digest}")

    def _bundle(self, kind: str, names: list[str], door: Door) -> _Bundle | None:
        if kind == "clusters":
            return self._clusters
        if kind == "endpoints":
            return self._endpoints.get(names[0]) if names else None
        return _of_door(kind, door)


@lru_cache(maxsize=256)
def _of_door(kind: str, door: Door) -> _Bundle:
    kinds = {
        "listeners": (LISTENER, listeners),
        "routes": (ROUTES, routes),
    }
    type_url, build = kinds[kind]
    return _Bundle(type_url, build(door))


class _Bundle:
    __slots__ = ("_resources", "_type_url", "digest")

    def __init__(self, type_url: str, found: list[Resource]) -> None:
        self._type_url = type_url
        self._resources = json.dumps(found, separators=(",", ":"), sort_keys=True)
        self.digest = hashlib.sha256(self._resources.encode()).hexdigest()[:16]

    def answer(self, version: str) -> Answer:
        head = json.dumps({"version_info": version, "type_url": self._type_url})
        return Answer(version=version, body=f'{head[:-1]}, "resources": {self._resources}}}'.encode())


def door_of(node: dict[str, Any], policy: Door) -> Door:
    """The door a node describes in its bootstrap's metadata, with this installation's policy.

    Raises ValueError for values that cannot be.
    """
    said = node.get("metadata", {}).get("slipway", {})
    port = int(said.get("port", policy.port))
    if not 0 < port < 65536:
        raise ValueError(f"node metadata: port {port} is no port")
    return Door(
        host=str(said.get("host", policy.host)),
        port=port,
        access_log=str(said.get("access_log", policy.access_log)),
        idle_seconds=policy.idle_seconds,
        body_bytes=policy.body_bytes,
        origins=policy.origins,
    )
