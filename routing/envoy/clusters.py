"""One upstream cluster per served model, its pods by EDS."""

from __future__ import annotations

from routing.domain.table import Route, RouteTable
from routing.envoy.resources import CLUSTER, ENDPOINTS, KEEP_ALIVE, REST, TYPE, Resource


def clusters(table: RouteTable) -> list[Resource]:
    return [_cluster(route) for route in table.routes]


def _cluster(route: Route) -> Resource:
    """``ignore_health_on_host_removal`` and a panic threshold of 0: without both, a removed or a lone draining pod
    still gets traffic (seen, design §5)."""
    return {
        "@type": CLUSTER,
        "name": route.deployment_id,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": REST},
        "connect_timeout": "2s",
        "lb_policy": "LEAST_REQUEST",
        "ignore_health_on_host_removal": True,
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "typed_extension_protocol_options": {
            f"{TYPE.removeprefix('type.googleapis.com/')}.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{TYPE}.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http_protocol_options": {}},
                "common_http_protocol_options": {"idle_timeout": KEEP_ALIVE},
            }
        },
        "circuit_breakers": {
            "thresholds": [{"max_connections": 4096, "max_pending_requests": 4096, "max_requests": 4096, "max_retries": 16}]
        },
        "outlier_detection": {
            "split_external_local_origin_errors": True,
            "consecutive_local_origin_failure": 3,
            "enforcing_consecutive_local_origin_failure": 100,
            "enforcing_consecutive_5xx": 0,
            "enforcing_consecutive_gateway_failure": 0,
            "enforcing_success_rate": 0,
            "enforcing_local_origin_success_rate": 0,
            "base_ejection_time": "5s",
            "max_ejection_percent": 50,
        },
    }


def load_assignment(route: Route) -> Resource:
    return {
        "@type": ENDPOINTS,
        "cluster_name": route.deployment_id,
        "endpoints": [
            {
                "lb_endpoints": [
                    {
                        "endpoint": {"address": {"socket_address": {"address": one.ip, "port_value": one.port}}},
                        "health_status": "DRAINING" if one.draining else "HEALTHY",
                    }
                    for one in sorted(route.endpoints)
                ]
            }
        ],
    }
