"""The door's routes: engines behind the authz check, and what the control plane answers itself."""

from __future__ import annotations

from routing.domain.admission import INFERENCE_PATHS
from routing.envoy.resources import CONTROL, DOOR, FILTER, PREFLIGHT_PATH, ROUTES, TYPE, UNKNOWN_PATH, Door, Resource

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
    open_door = {"envoy.filters.http.ext_authz": {"@type": f"{FILTER}.ext_authz.v3.ExtAuthzPerRoute", "disabled": True}}
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
        "@type": f"{FILTER}.cors.v3.CorsPolicy",
        "allow_origin_string_match": [{"exact": origin} for origin in origins],
        "allow_methods": "GET, HEAD, POST, OPTIONS",
        "allow_headers": _BROWSER_HEADERS,
        "expose_headers": "x-request-id, retry-after",
        "max_age": "600",
        "forward_not_matching_preflights": True,
    }
