"""Envoy's resources as pure functions of the route table and of what a node says of itself (design §5).

Names: listener ``door``, routes ``door``, one EDS cluster per deployment, named by its public id. The authz service
answers each admitted call with ``x-slipway-route``, and the one inference route picks the cluster of that name: the
route configuration is the same for one model and for thousands. Clients cannot send such a header (it is stripped
before any filter sees it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Resource = dict[str, Any]

TYPE = "type.googleapis.com/envoy"
LISTENER = f"{TYPE}.config.listener.v3.Listener"
ROUTES = f"{TYPE}.config.route.v3.RouteConfiguration"
CLUSTER = f"{TYPE}.config.cluster.v3.Cluster"
ENDPOINTS = f"{TYPE}.config.endpoint.v3.ClusterLoadAssignment"
FILTER = f"{TYPE}.extensions.filters.http"

CONTROL = "slipway_control"
"""The bootstrap's static cluster: this control plane, which also answers authz checks and model lists."""

KEEP_ALIVE = "3s"
"""How long an idle connection to an engine is kept: less than the 5 s after which llama.cpp and vLLM (uvicorn) close it,
or calls would now and then be sent into a connection that is just being closed."""

DOOR = "door"
AUTHZ_PATH = "/authz"
PREFLIGHT_PATH = "/door/preflight"
UNKNOWN_PATH = "/door/unknown"
MODEL_NAME = "[!-~]{1,200}"
"""What may be a model's name: printable ASCII without spaces. It becomes a header, so nothing else may pass."""


@dataclass(frozen=True, slots=True)
class Door:
    """What one Envoy listens on and writes to, from its bootstrap's node metadata; plus the policy of this installation.

    ``idle_seconds``: how long neither side may send a byte before the call ends (504 when no answer had begun).
    ``body_bytes``: the largest request body. ``origins``: browsers' origins that may call (C38); empty: none.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    access_log: str = "/dev/stdout"
    idle_seconds: int = 100
    body_bytes: int = 16 * 1024 * 1024
    origins: tuple[str, ...] = ()


REST: Resource = {
    "resource_api_version": "V3",
    "initial_fetch_timeout": "15s",
    "api_config_source": {
        "api_type": "REST",
        "transport_api_version": "V3",
        "cluster_names": [CONTROL],
        "refresh_delay": "0.2s",
        "request_timeout": "30s",
    },
}
"""The control plane holds a poll until something changed (``routing.authz``), so the delay here is only the gap between."""
