"""Envoy's bootstrap: who this node is and where its control plane answers. Everything else comes by xDS."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

CONTROL = "slipway_control"


def bootstrap(
    *, xds_port: int, admin_port: int, door_port: int, access_log: str, xds_host: str = "127.0.0.1", host: str = "127.0.0.1"
) -> dict[str, Any]:
    """The door's address and its access log travel as node metadata: the control plane builds this node's listener
    from them, so that many Envoys, each with its own, follow one control plane. The admin port is on loopback only."""
    poll = {
        "resource_api_version": "V3",
        "initial_fetch_timeout": "0s",
        "api_config_source": {
            "api_type": "REST",
            "transport_api_version": "V3",
            "cluster_names": [CONTROL],
            "refresh_delay": "0.2s",
            "request_timeout": "30s",
        },
    }
    return {
        "node": {
            "id": f"{socket.gethostname()}:{door_port}",
            "cluster": "slipway-door",
            "metadata": {"slipway": {"host": host, "port": door_port, "access_log": access_log}},
        },
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin_port}}},
        "dynamic_resources": {"lds_config": poll, "cds_config": poll},
        "static_resources": {
            "clusters": [
                {
                    "name": CONTROL,
                    "type": "STRICT_DNS",
                    # With many clusters Envoy's main thread is busy for seconds writing its polls; a shorter time would
                    # count that against the connection. Authz checks have their own, shorter limit.
                    "connect_timeout": "15s",
                    "lb_policy": "ROUND_ROBIN",
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                            "explicit_http_config": {"http_protocol_options": {}},
                            # Less than the 5 s after which uvicorn closes an idle connection.
                            "common_http_protocol_options": {"idle_timeout": "3s"},
                        }
                    },
                    "circuit_breakers": {
                        "thresholds": [{"max_connections": 8192, "max_pending_requests": 8192, "max_requests": 8192}]
                    },
                    "load_assignment": {
                        "cluster_name": CONTROL,
                        "endpoints": [
                            {
                                "lb_endpoints": [
                                    {
                                        "endpoint": {
                                            "address": {"socket_address": {"address": xds_host, "port_value": xds_port}}
                                        }
                                    }
                                ]
                            }
                        ],
                    },
                }
            ]
        },
        "layered_runtime": {
            # The rule for model names needs a regular expression larger than Envoy's default limit.
            "layers": [{"name": "slipway", "static_layer": {"re2.max_program_size.error_level": 1000}}]
        },
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": "envoy.resource_monitors.global_downstream_max_connections",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.resource_monitors."
                        "downstream_connections.v3.DownstreamConnectionsConfig",
                        "max_active_downstream_connections": 10000,
                    },
                }
            ]
        },
    }


def write_bootstrap(
    path: Path,
    *,
    xds_port: int,
    admin_port: int,
    door_port: int,
    access_log: Path,
    xds_host: str = "127.0.0.1",
    host: str = "127.0.0.1",
) -> Path:
    """Write the bootstrap as JSON, which Envoy reads from a .yaml file too; the folder of the access log is made."""
    access_log.parent.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    document = bootstrap(
        xds_port=xds_port,
        admin_port=admin_port,
        door_port=door_port,
        access_log=str(access_log),
        xds_host=xds_host,
        host=host,
    )
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path
