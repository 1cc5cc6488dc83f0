"""The door's listener: the filters a call passes, in their order, and the line it leaves (design §5)."""

from __future__ import annotations

from routing.domain.admission import UNREADABLE
from routing.envoy import replies
from routing.envoy.resources import AUTHZ_PATH, CONTROL, DOOR, FILTER, LISTENER, MODEL_NAME, REST, TYPE, Door, Resource


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
        "rds": {"route_config_name": DOOR, "config_source": REST},
        "http_filters": [_cors(), _model_from_body(), _model_name_is_plain(), _model_to_header(), _authz(), _router()],
        "local_reply_config": replies.local_replies(door.body_bytes, door.idle_seconds),
        "access_log": [_access_log(door.access_log)],
    }


def _cors() -> Resource:
    return {"name": "envoy.filters.http.cors", "typed_config": {"@type": f"{FILTER}.cors.v3.Cors"}}


def _model_from_body() -> Resource:
    def to(key: str, **value: str) -> Resource:
        return {"metadata_namespace": "slipway", "key": key, **value}

    return {
        "name": "envoy.filters.http.json_to_metadata",
        "typed_config": {
            "@type": f"{FILTER}.json_to_metadata.v3.JsonToMetadata",
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
            "@type": f"{FILTER}.rbac.v3.RBAC",
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
            "@type": f"{FILTER}.header_mutation.v3.HeaderMutation",
            "mutations": {"request_mutations": [header("x-slipway-model", "model"), header("x-slipway-problem", "problem")]},
        },
    }


def _authz() -> Resource:
    def exact(*names: str) -> Resource:
        return {"patterns": [{"exact": name} for name in names]}

    return {
        "name": "envoy.filters.http.ext_authz",
        "typed_config": {
            "@type": f"{FILTER}.ext_authz.v3.ExtAuthz",
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
        "typed_config": {"@type": f"{FILTER}.router.v3.Router", "suppress_envoy_headers": True},
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
