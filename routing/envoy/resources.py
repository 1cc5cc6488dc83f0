"""Envoy's resources as pure functions of the route table and of what a node says of itself (design §5).

Names: listener ``door``, routes ``door``, one EDS cluster per deployment, named by its public id. The authz service
answers each admitted call with ``x-slipway-route``, and the one inference route picks the cluster of that name: the
route configuration is the same for one model and for thousands. Clients cannot send such a header (it is stripped
before any filter sees it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routing.domain.admission import INFERENCE_PATHS, UNREADABLE
from routing.domain.table import Route, RouteTable
from routing.envoy import replies

Resource = dict[str, Any]

TYPE = "type.googleapis.com/envoy"
LISTENER = f"{TYPE}.config.listener.v3.Listener"
ROUTES = f"{TYPE}.config.route.v3.RouteConfiguration"
CLUSTER = f"{TYPE}.config.cluster.v3.Cluster"
ENDPOINTS = f"{TYPE}.config.endpoint.v3.ClusterLoadAssignment"
_FILTER = f"{TYPE}.extensions.filters.http"

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


def listeners(door: Door) -> list[Resource]:
    return [
        {
            "@type": LISTENER,
            "name": DOOR,
            "address": {"socket_address": {"address": door.host, "port_value": door.port}},
            "per_connection_buffer_limit_bytes": 64 * 1024,
            "filter_chains": [
                {
                    "filters": [
                        {
                            "name": "envoy.filters.network.http_connection_manager",
                            "typed_config": _connection_manager(door),
                        }
                    ]
                }
            ],
        }
    ]


def _connection_manager(door: Door) -> Resource:
    return {
        "@type": f"{TYPE}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": DOOR,
        "codec_type": "AUTO",
        "use_remote_address": True,
        "server_name": "slipway",
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "always_set_request_id_in_response": True,
        "common_http_protocol_options": {"headers_with_underscores_action": "DROP_HEADER"},
        "http2_protocol_options": {
            "max_concurrent_streams": 256,
            "initial_stream_window_size": 256 * 1024,
            "initial_connection_window_size": 1024 * 1024,
        },
        "stream_idle_timeout": f"{door.idle_seconds}s",
        "request_headers_timeout": "10s",
        "drain_timeout": "30s",
        "early_header_mutation_extensions": [
            {
                "name": "strip",
                "typed_config": {
                    "@type": f"{TYPE}.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
                    "mutations": [
                        {"remove_on_match": {"key_matcher": {"prefix": "x-slipway-"}}},
                        {"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}},
                        {"remove": "x-request-id"},
                    ],
                },
            }
        ],
        "rds": {"route_config_name": DOOR, "config_source": _REST},
        "http_filters": [_cors(), _model_from_body(), _model_name_is_plain(), _model_to_header(), _authz(), _router()],
        "local_reply_config": replies.local_replies(door.body_bytes, door.idle_seconds),
        "access_log": [_access_log(door.access_log)],
    }


_REST: Resource = {
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


def _cors() -> Resource:
    return {"name": "envoy.filters.http.cors", "typed_config": {"@type": f"{_FILTER}.cors.v3.Cors"}}


def _model_from_body() -> Resource:
    def to(key: str, **value: str) -> Resource:
        return {"metadata_namespace": "slipway", "key": key, **value}

    return {
        "name": "envoy.filters.http.json_to_metadata",
        "typed_config": {
            "@type": f"{_FILTER}.json_to_metadata.v3.JsonToMetadata",
            "request_rules": {
                "allow_content_types_regex": {"regex": "(?i)application/json[ \t]*(;.*)?"},
                "rules": [
                    {
                        "selectors": [{"key": "model"}],
                        "on_present": to("model"),
                        "on_missing": to("problem", value="missing"),
                        "on_error": to("problem", value=UNREADABLE),
                    }
                ],
            },
        },
    }


def _model_name_is_plain() -> Resource:
    """Refuse what must not become a header: a name with a line break could otherwise speak to the authz service."""

    def is_model(value: Resource) -> Resource:
        return {"sourced_metadata": {"metadata_matcher": {"filter": "slipway", "path": [{"key": "model"}], "value": value}}}

    return {
        "name": "envoy.filters.http.rbac",
        "typed_config": {
            "@type": f"{_FILTER}.rbac.v3.RBAC",
            "rules": {
                "action": "ALLOW",
                "policies": {
                    "plain": {
                        "principals": [{"any": True}],
                        "permissions": [
                            {
                                "or_rules": {
                                    "rules": [
                                        {"not_rule": is_model({"present_match": True})},
                                        is_model({"string_match": {"safe_regex": {"regex": MODEL_NAME}}}),
                                    ]
                                }
                            }
                        ],
                    }
                },
            },
        },
    }


def _model_to_header() -> Resource:
    def header(name: str, key: str) -> Resource:
        return {
            "append": {
                "header": {"key": name, "value": f"%DYNAMIC_METADATA(slipway:{key})%"},
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }
        }

    return {
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {
            "@type": f"{_FILTER}.header_mutation.v3.HeaderMutation",
            "mutations": {"request_mutations": [header("x-slipway-model", "model"), header("x-slipway-problem", "problem")]},
        },
    }


def _authz() -> Resource:
    def exact(*names: str) -> Resource:
        return {"patterns": [{"exact": name} for name in names]}

    return {
        "name": "envoy.filters.http.ext_authz",
        "typed_config": {
            "@type": f"{_FILTER}.ext_authz.v3.ExtAuthz",
            "transport_api_version": "V3",
            "clear_route_cache": True,
            "status_on_error": {"code": "ServiceUnavailable"},
            "allowed_headers": exact("authorization", "x-slipway-model", "x-slipway-problem", "x-request-id"),
            "http_service": {
                "server_uri": {"uri": "http://control", "cluster": CONTROL, "timeout": "2s"},
                "path_prefix": AUTHZ_PATH,
                "retry_policy": {"retry_on": "connect-failure,reset", "num_retries": 1},
                "authorization_response": {
                    "allowed_upstream_headers": exact("x-slipway-route"),
                    "allowed_client_headers": exact("content-type", "retry-after", "www-authenticate"),
                    "dynamic_metadata_from_headers": exact(
                        "x-slipway-project", "x-slipway-key", "x-slipway-route", "x-slipway-called"
                    ),
                },
            },
        },
    }


def _router() -> Resource:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{_FILTER}.router.v3.Router", "suppress_envoy_headers": True},
    }


def _access_log(path: str) -> Resource:
    """One JSON line per request. ``key``, ``project``, ``deployment`` and ``model`` are what the authz service found."""

    def found(name: str) -> str:
        return f"%DYNAMIC_METADATA(envoy.filters.http.ext_authz:{name})%"

    return {
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": f"{TYPE}.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {
                "json_format": {
                    "started_at": "%START_TIME(%Y-%m-%dT%H:%M:%S.%6fZ)%",
                    "request_id": "%REQ(X-REQUEST-ID)%",
                    "method": "%REQ(:METHOD)%",
                    "path": "%PATH(NQ)%",
                    "status": "%RESPONSE_CODE%",
                    "details": "%RESPONSE_CODE_DETAILS%",
                    "flags": "%RESPONSE_FLAGS%",
                    "duration_ms": "%DURATION%",
                    "first_byte_ms": "%RESPONSE_DURATION%",
                    "bytes_received": "%BYTES_RECEIVED%",
                    "bytes_sent": "%BYTES_SENT%",
                    "upstream": "%UPSTREAM_HOST%",
                    "key": found("x-slipway-key"),
                    "project": found("x-slipway-project"),
                    "deployment": found("x-slipway-route"),
                    "model": found("x-slipway-called"),
                }
            },
        },
    }


_RETRY: Resource = {
    "retry_on": "connect-failure,refused-stream,reset-before-request",
    "num_retries": 2,
    "retry_host_predicate": [
        {
            "name": "previous_hosts",
            "typed_config": {"@type": f"{TYPE}.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"},
        }
    ],
    "host_selection_retry_max_attempts": 3,
}
"""Only what no engine has begun: a call that may have run is never repeated."""


def routes(door: Door) -> list[Resource]:
    open_door = {"envoy.filters.http.ext_authz": {"@type": f"{_FILTER}.ext_authz.v3.ExtAuthzPerRoute", "disabled": True}}
    inside = ["x-slipway-route", "x-slipway-model", "x-slipway-problem"]
    return [
        {
            "@type": ROUTES,
            "name": DOOR,
            "virtual_hosts": [
                {
                    "name": DOOR,
                    "domains": ["*"],
                    "typed_per_filter_config": {"envoy.filters.http.cors": _cors_policy(door.origins)},
                    "request_body_buffer_limit": door.body_bytes,
                    "routes": [
                        {
                            "name": "preflight",
                            "match": {"prefix": "/v1/", "headers": [_method("OPTIONS")]},
                            "route": _answered_inside(PREFLIGHT_PATH),
                            "typed_per_filter_config": open_door,
                        },
                        *(
                            {
                                "name": "models",
                                "match": {**match, "headers": [_method("GET", "HEAD")]},
                                "route": {"cluster": CONTROL, "timeout": "5s"},
                                "request_headers_to_remove": inside,
                                "typed_per_filter_config": open_door,
                            }
                            for match in ({"path": "/v1/models"}, {"prefix": "/v1/models/"})
                        ),
                        *(
                            {
                                "name": "inference",
                                "match": {"path": path, "headers": [_method("POST")]},
                                "route": {
                                    "cluster_header": "x-slipway-route",
                                    "cluster_not_found_response_code": "SERVICE_UNAVAILABLE",
                                    "timeout": "0s",
                                    "idle_timeout": f"{door.idle_seconds}s",
                                    "retry_policy": _RETRY,
                                },
                                "request_headers_to_remove": ["authorization", "cookie", *inside],
                            }
                            for path in INFERENCE_PATHS
                        ),
                        {
                            "name": "unknown",
                            "match": {"prefix": "/"},
                            "route": _answered_inside(UNKNOWN_PATH),
                            "typed_per_filter_config": open_door,
                        },
                    ],
                }
            ],
        }
    ]


def _answered_inside(path: str) -> Resource:
    """The control plane answers at ``path``, whatever was asked: no caller's path reaches it. (Envoy adds no CORS header
    to what a route answers directly.)"""
    return {"cluster": CONTROL, "timeout": "5s", "regex_rewrite": {"pattern": {"regex": "^.*$"}, "substitution": path}}


def _method(*names: str) -> Resource:
    return {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(names)}}}


_BROWSER_HEADERS = (
    "authorization, content-type, accept, idempotency-key, openai-organization, openai-project, openai-beta, user-agent, "
    "x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, x-stainless-helper-method, x-stainless-lang, "
    "x-stainless-os, x-stainless-package-version, x-stainless-poll-helper, x-stainless-retry-count, x-stainless-runtime, "
    "x-stainless-runtime-version, x-stainless-timeout"
)
"""What the OpenAI client sends from a browser."""


def _cors_policy(origins: tuple[str, ...]) -> Resource:
    return {
        "@type": f"{_FILTER}.cors.v3.CorsPolicy",
        "allow_origin_string_match": [{"exact": origin} for origin in origins],
        "allow_methods": "GET, HEAD, POST, OPTIONS",
        "allow_headers": _BROWSER_HEADERS,
        "expose_headers": "x-request-id, retry-after",
        "max_age": "600",
        "forward_not_matching_preflights": True,
    }


def clusters(table: RouteTable) -> list[Resource]:
    return [_cluster(route) for route in table.routes]


def _cluster(route: Route) -> Resource:
    """``ignore_health_on_host_removal`` and a panic threshold of 0: without both, a removed or a lone draining pod
    still gets traffic (seen, design §5)."""
    return {
        "@type": CLUSTER,
        "name": route.deployment_id,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": _REST},
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


def load_assignments(table: RouteTable) -> list[Resource]:
    return [
        {
            "@type": ENDPOINTS,
            "cluster_name": route.deployment_id,
            "endpoints": [
                {
                    "lb_endpoints": [
                        {
                            "endpoint": {
                                "address": {"socket_address": {"address": endpoint.ip, "port_value": endpoint.port}}
                            },
                            "health_status": "DRAINING" if endpoint.draining else "HEALTHY",
                        }
                        for endpoint in sorted(route.endpoints)
                    ]
                }
            ],
        }
        for route in table.routes
    ]
