"""When the database does not answer, the API says so, and never that nothing happened."""

from __future__ import annotations

import psycopg
from django.db.utils import OperationalError

from portal.tenancy.api.errors import exception_handler


def test_a_lost_database_is_503_with_a_time_to_come_back() -> None:
    error = OperationalError("server closed the connection unexpectedly")
    error.__cause__ = psycopg.OperationalError("server closed the connection unexpectedly")
    answer = exception_handler(error, {})
    assert answer.status_code == 503
    assert answer.data["code"] == "unavailable"
    assert answer.headers["Retry-After"] == "5"
    assert "look first whether it took effect" in answer.data["detail"]


def test_a_row_that_somebody_holds_too_long_is_503_too() -> None:
    error = OperationalError("canceling statement due to lock timeout")
    error.__cause__ = psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")
    assert exception_handler(error, {}).status_code == 503
