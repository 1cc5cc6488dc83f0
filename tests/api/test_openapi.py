"""The committed OpenAPI file is what the code says, is valid 3.1, and the API keeps to it under generated input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from models_app.models import Deployment
from portal.tenancy.services.tokens import token_create
from tests.api.conftest import Api
from tests.cast import Cast, actor_of

FILE = Path(__file__).resolve().parent.parent.parent / "docs" / "openapi.yaml"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def _generated() -> str:
    out = StringIO()
    call_command("spectacular", "--urlconf", "portal.api_urls", "--fail-on-warn", stdout=out)
    return out.getvalue()


def test_the_committed_file_is_what_the_code_says() -> None:
    assert FILE.read_text().strip() == _generated().strip(), "run `make openapi` and look at the difference"


def test_the_file_is_valid_openapi_3_1() -> None:
    document = yaml.safe_load(FILE.read_text())
    assert document["openapi"].startswith("3.1")
    validate(document)


def test_every_operation_has_a_name_of_its_own_a_refusal_and_a_way_in() -> None:
    document = yaml.safe_load(FILE.read_text())
    names = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names.append(operation["operationId"])
            assert operation["security"], (path, method)
            refusal = operation["responses"]["default"]["content"]["application/json"]["schema"]
            assert refusal == {"$ref": "#/components/schemas/Error"}, (path, method)
    assert len(names) == len(set(names)) > 50


@pytest.mark.django_db
def test_the_served_file_is_the_committed_one(api: Api) -> None:
    served = api("viewer").get("/api/v1/openapi.json")
    assert served.status_code == 200
    assert json.loads(served.content) == yaml.safe_load(FILE.read_text())


_schema = schemathesis.openapi.from_path(str(FILE))
_schema.app = WSGIHandler()
# The event stream never ends by itself; tests/api/test_events.py has it.
_operations = [
    operation for result in _schema.get_all_operations() if not (operation := result.ok()).path.endswith("/events/")
]


@pytest.fixture
def in_process() -> Iterator[None]:
    """Requests of the bare application run in the test's transaction, as those of Django's test client do."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def known(cast: Cast, deployment: Deployment) -> dict[str, str]:
    """Path segment -> the id of an object that is there."""
    return {
        "projects": cast.project.public_id,
        "organizations": cast.organization.public_id,
        "deployments": deployment.public_id,
        "profiles": deployment.profile.public_id,
        "clusters": deployment.cluster.public_id,
        "grants": deployment.grant.public_id,
        "users": cast.viewer.public_id,
    }


@pytest.mark.django_db
@pytest.mark.parametrize("operation", _operations, ids=lambda operation: f"{operation.method} {operation.path}")
def test_generated_input_breaks_nothing_and_answers_keep_to_the_file(
    operation: Any, cast: Cast, known: dict[str, str], in_process: None
) -> None:
    caller = (
        cast.platform_admin if "/users/" in operation.path or operation.path.endswith("/organizations/") else cast.org_admin
    )
    caller = cast.fleet_operator if operation.path.startswith(("/api/v1/profiles", "/api/v1/clusters")) else caller
    _, secret = token_create(actor=actor_of(caller), name="t", scopes=["write"], expires_in_days=1)
    there = known.get(operation.path.split("/")[3])

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        if there is not None and "public_id" in case.path_parameters and len(str(case.path_parameters["public_id"])) % 2:
            case.path_parameters["public_id"] = there
        before = transaction.savepoint()
        response = case.call(headers={"Authorization": f"Bearer {secret}", "Accept-Encoding": "identity"})
        transaction.savepoint_rollback(before)
        case.validate_response(response, checks=CHECKS)

    check()
