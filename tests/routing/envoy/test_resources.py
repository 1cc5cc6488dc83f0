"""Rules of the gateway that must be readable in what Envoy is told (design §5)."""

from __future__ import annotations

from datetime import UTC, datetime

from routing.domain.admission import INFERENCE_PATHS
from routing.domain.table import Endpoint, Route, RouteTable
from routing.envoy.clusters import clusters, load_assignment
from routing.envoy.listeners import listeners
from routing.envoy.resources import CONTROL, Door
from routing.envoy.routes import routes

TABLE = RouteTable(
    read_at=datetime(2026, 12, 1, tzinfo=UTC),
    routes=(Route("dep_1", "prj_a", "one", 1, (Endpoint("127.64.0.2", 1, draining=True), Endpoint("127.64.0.1", 1))),),
)


def test_a_removed_or_lone_draining_pod_gets_nothing_new() -> None:
    (cluster,) = clusters(TABLE)
    assert cluster["ignore_health_on_host_removal"] is True
    assert cluster["common_lb_config"]["healthy_panic_threshold"] == {"value": 0}
    assignment = load_assignment(TABLE.routes[0])
    states = {
        one["endpoint"]["address"]["socket_address"]["address"]: one["health_status"]
        for one in assignment["endpoints"][0]["lb_endpoints"]
    }
    assert states == {"127.64.0.1": "HEALTHY", "127.64.0.2": "DRAINING"}


def test_the_authz_check_is_left_out_only_where_the_control_plane_itself_answers() -> None:
    (host,) = routes(Door())[0]["virtual_hosts"]
    for route in host["routes"]:
        unchecked = "envoy.filters.http.ext_authz" in route.get("typed_per_filter_config", {})
        inside = route["route"].get("cluster") == CONTROL
        assert unchecked == inside, route["name"]


def test_no_callers_path_reaches_the_control_plane_but_models() -> None:
    (host,) = routes(Door())[0]["virtual_hosts"]
    for route in host["routes"]:
        if route["route"].get("cluster") == CONTROL and route["name"] != "models":
            assert route["route"]["regex_rewrite"]["pattern"]["regex"] == "^.*$"


def test_the_engine_never_gets_the_callers_key() -> None:
    (host,) = routes(Door())[0]["virtual_hosts"]
    inference = [route for route in host["routes"] if "cluster_header" in route["route"]]
    assert sorted(route["match"]["path"] for route in inference) == sorted(INFERENCE_PATHS)
    for route in inference:
        assert {"authorization", "cookie", "x-slipway-route"} <= set(route["request_headers_to_remove"])
        assert route["route"]["timeout"] == "0s", "a long stream is not cut by a clock"


def test_the_order_of_filters_is_strip_then_cors_then_model_then_key() -> None:
    manager = listeners(Door())[0]["filter_chains"][0]["filters"][0]["typed_config"]
    assert [one["name"].rsplit(".", 1)[-1] for one in manager["http_filters"]] == [
        "cors",
        "json_to_metadata",
        "rbac",
        "header_mutation",
        "ext_authz",
        "router",
    ]
    prefixes = [
        mutation["remove_on_match"]["key_matcher"]["prefix"]
        for mutation in manager["early_header_mutation_extensions"][0]["typed_config"]["mutations"]
        if "remove_on_match" in mutation
    ]
    assert prefixes == ["x-slipway-", "x-envoy-"]
