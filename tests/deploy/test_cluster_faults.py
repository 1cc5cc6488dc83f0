"""The fault proxy does what chaos tests rely on, on the real API server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.controlplane_api import Api
from tests.cluster_faults import FaultyApi

pytestmark = pytest.mark.cluster


@pytest.fixture
def portal(faulty_api: FaultyApi, settings: Any) -> Iterator[Api]:
    api = Api(Path(settings.CLUSTER_CREDENTIALS_DIR) / "local.kubeconfig")
    yield api
    api.close()


def quota(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": namespace},
        "spec": {"hard": {"pods": "1"}},
    }


def test_without_faults_it_is_the_api_server(portal: Api, faulty_api: FaultyApi, namespace: str) -> None:
    assert faulty_api.url == portal.http.base_url
    portal.apply(quota(namespace), manager="slipway")
    assert len(portal.items("v1", "Node")) == 9
    events = portal.watch(f"/api/v1/namespaces/{namespace}/resourcequotas", seconds=2)
    assert next(iter(events))["type"] == "ADDED"
    assert faulty_api.requests("^PATCH .*resourcequotas/q") == [
        (f"PATCH /api/v1/namespaces/{namespace}/resourcequotas/q?fieldManager=slipway&force=true", 201)
    ]


@pytest.mark.parametrize("status", [401, 403, 409, 410, 429, 500, 503])
def test_an_error_answer_comes_the_stated_number_of_times(portal: Api, faulty_api: FaultyApi, status: int) -> None:
    faulty_api.add("GET /api/v1/nodes", status=status, times=2, retry_after=3)
    for _ in range(2):
        answer = portal.http.get("/api/v1/nodes")
        assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (status, status, "3")
    assert portal.http.get("/api/v1/nodes").status_code == 200


def test_a_lost_answer_has_taken_effect_and_a_dropped_request_has_not(
    portal: Api, faulty_api: FaultyApi, namespace: str, admin: Api
) -> None:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/q"
    faulty_api.add("PATCH", drop=True)
    with pytest.raises(httpx.TransportError):
        portal.apply(quota(namespace))
    assert admin.get(path) is None
    faulty_api.add("PATCH", lose=True)
    with pytest.raises(httpx.TransportError):
        portal.apply(quota(namespace))
    assert admin.get(path) is not None


def test_slow_answers(portal: Api, faulty_api: FaultyApi) -> None:
    faulty_api.add("GET /version", delay=0.4)
    began = time.monotonic()
    portal.get("/version")
    assert time.monotonic() - began >= 0.4


def test_c17_a_watch_cut_in_the_middle_of_a_line(portal: Api, faulty_api: FaultyApi) -> None:
    faulty_api.add("watch=1", cut=2)
    got: list[str] = []

    def follow() -> None:
        with portal.http.stream("GET", "/api/v1/nodes", params={"watch": "1", "timeoutSeconds": "5"}) as answer:
            got.extend(answer.iter_text())

    with pytest.raises(httpx.TransportError):
        follow()
    whole = "".join(got).split("\n")
    assert len(whole) == 3
    assert json.loads(whole[1])["type"] == "ADDED"
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole[2])
