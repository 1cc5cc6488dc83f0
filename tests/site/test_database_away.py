"""A database that does not answer in time is "not available now" on pages and fragments, with a way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection
from django.test import Client

from tests.cast import Cast


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Somebody holds ``table`` for longer than anybody waits."""
    parameters = connection.get_connection_params()
    where = {name: parameters[name] for name in ("host", "user", "dbname") if name in parameters}
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    with psycopg.connect(**where) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", ["django_session", "models_app_deployment"])
@pytest.mark.parametrize("fragment", [False, True])
def test_a_busy_database_is_said(table: str, fragment: bool, cast: Cast) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(cast.member)
    assert client.get("/deployments/").status_code == 200
    headers = {"HX-Request": "true"} if fragment else {}
    with locked(table):
        answer = client.get("/deployments/live/" if fragment else "/deployments/", headers=headers)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "Not available now" in answer.content.decode()
    assert client.get("/deployments/").status_code == 200
