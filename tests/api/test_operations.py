"""Probes, metrics and logs: what an operator sees of the running whole."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
import structlog
from celery import Celery
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from models_app.models import Deployment
from portal.kernel.clock import frozen, now
from portal.settings.logging import MASK, logging_config, masked
from portal.site.queue import QUEUE, SENT_AT
from portal.tenancy.models import ApiToken, unscoped
from portal.work.models import Heartbeat
from tests.api.conftest import Api
from tests.cast import Cast, make_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(settings.VALKEY_URL)
    client.delete(QUEUE)
    yield client
    client.delete(QUEUE)
    client.close()


def _samples(client: Client) -> dict[tuple[str, ...], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_healthz_needs_nothing_and_readyz_says_what_it_checked(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"status": "ok", "checks": {"database": "ok", "valkey": "ok"}}
    assert client.post("/healthz").status_code == 405
    assert ready.headers["Cache-Control"] == "no-store"


def test_without_valkey_pages_are_served_and_it_is_said(client: Client, settings: Any) -> None:
    settings.VALKEY_URL = "redis://127.0.0.1:1/0"
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert _samples(client)[("slipway_queue_up",)] == 0


def test_with_migrations_missing_it_is_not_ready(client: Client) -> None:
    from django.db.migrations.recorder import MigrationRecorder  # noqa: PLC0415 - only this test writes the record

    MigrationRecorder.Migration.objects.filter(app="routing").delete()
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert "migrations" in ready.json()["checks"]["database"]


def test_loop_lag_and_the_oldest_dirty_row_grow_with_the_clock(client: Client, deployment: Deployment) -> None:
    at = now()
    with unscoped("test"):
        Deployment.objects.update(dirty_since=at, next_attempt_at=at, generation=2, observed_generation=1)
    with frozen(at + timedelta(seconds=90)):
        samples = _samples(client)
    assert samples[("slipway_loop_lag_seconds", "deployment")] == pytest.approx(90)
    assert samples[("slipway_oldest_dirty_row_seconds", "deployment")] == pytest.approx(90)
    assert samples[("slipway_dirty_rows", "deployment")] == 1
    assert samples[("slipway_deployments", "declared")] == 1
    with unscoped("test"):
        Deployment.objects.update(dirty_since=None, observed_generation=2, next_attempt_at=at + timedelta(hours=1))
    with frozen(at + timedelta(seconds=90)):
        samples = _samples(client)
    assert samples[("slipway_loop_lag_seconds", "deployment")] == 0
    assert samples[("slipway_oldest_dirty_row_seconds", "deployment")] == 0


def test_observer_lag_is_the_age_of_its_heartbeat(client: Client) -> None:
    at = now()
    make_cluster("local", reachable=False)
    Heartbeat.objects.create(name="observer:local", at=at)
    with frozen(at + timedelta(seconds=7)):
        samples = _samples(client)
    assert samples[("slipway_observer_lag_seconds", "local")] == pytest.approx(7)
    assert samples[("slipway_cluster_reachable", "local")] == 0


def test_queue_lag_is_the_age_of_the_oldest_message(client: Client, queue: redis.Redis) -> None:
    app = Celery("test", broker=settings.VALKEY_URL)
    at = now()
    with frozen(at):
        app.send_task("nobody.takes_this", args=["dep_1"])
    with frozen(at + timedelta(seconds=20)):
        app.send_task("nobody.takes_this", args=["dep_2"])
        samples = _samples(client)
    app.close()
    assert samples[("slipway_queue_messages", QUEUE)] == 2
    assert samples[("slipway_queue_lag_seconds", QUEUE)] == pytest.approx(20)
    oldest = json.loads(queue.lindex(QUEUE, -1))
    assert datetime.fromisoformat(oldest["headers"][SENT_AT]) == at


def test_metrics_name_no_tenant(client: Client, cast: Cast, deployment: Deployment) -> None:
    text = client.get("/metrics").content.decode()
    for secret in (cast.project.public_id, cast.project.slug, deployment.public_id, deployment.name, cast.member.email):
        assert secret not in text


@pytest.fixture
def log_lines() -> Iterator[Any]:
    """Log through the house's formatter into a buffer; call it for the lines so far, as JSON."""
    buffer = io.StringIO()
    handler = logging.StreamHandler(buffer)
    formatter = logging_config("INFO")["formatters"]["json"]
    handler.setFormatter(formatter.pop("()")(**formatter))
    root = logging.getLogger()
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in buffer.getvalue().splitlines()]
    root.removeHandler(handler)


def test_one_request_one_line_with_its_id(api: Api, log_lines: Any) -> None:
    api("member").get("/api/v1/me/?name=typed", HTTP_X_REQUEST_ID="click-0042")
    token = ApiToken.objects.get()
    lines = [line for line in log_lines() if line["message"] == "request"]
    assert len(lines) == 1
    assert lines[0]["request_id"] == "click-0042"
    assert (lines[0]["method"], lines[0]["path"], lines[0]["status"]) == ("GET", "/api/v1/me/", 200)
    assert (lines[0]["actor"], lines[0]["token_id"]) == (token.user.public_id, token.public_id)
    assert datetime.fromisoformat(lines[0]["at"]).tzinfo == UTC
    assert "typed" not in json.dumps(lines[0])


def test_lines_of_libraries_are_json_and_carry_the_id_too(log_lines: Any) -> None:
    with structlog.contextvars.bound_contextvars(request_id="click-0043", kind="deployment"):
        logging.getLogger("some.library").warning("took %s with Bearer %s", "long", "abcdefghijklmnopqrstuvwxyz")
    line = log_lines()[-1]
    assert line["request_id"] == "click-0043"
    assert line["kind"] == "deployment"
    assert line["message"] == f"took long with Bearer {MASK}"


def test_a_traceback_is_one_line_without_secrets(log_lines: Any) -> None:
    try:
        raise RuntimeError("postgresql://slipway:hunter22@db/slipway slk_abcdefgh_" + "x" * 43)
    except RuntimeError:
        structlog.get_logger("test").exception("broke")
    line = log_lines()[-1]
    assert "RuntimeError" in line["exception"]
    assert "hunter22" not in json.dumps(line)
    assert "x" * 43 not in json.dumps(line)


@pytest.mark.parametrize(
    "event",
    [
        {"password": "hunter22"},
        {"secret": "hunter22"},
        {"token": "hunter22"},
        {"headers": {"Authorization": "hunter22", "Cookie": "hunter22"}},
        {"message": "slp_abcdefgh_hunter22hunter22hunter22"},
        {"rows": [{"api_token": "hunter22"}]},
    ],
)
def test_secrets_are_masked_by_name_and_by_look(event: dict[str, Any]) -> None:
    assert "hunter22" not in json.dumps(masked(None, "info", event))


def test_ids_are_not_secrets() -> None:
    event = {"token_id": "tok_123", "key": "value", "request_id": "abc", "path": "/api/v1/tokens/"}
    assert masked(None, "info", event) == event
