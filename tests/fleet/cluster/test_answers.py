from __future__ import annotations

import orjson
import pytest

from fleet.cluster import (
    Absent,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    StaleObject,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from fleet.cluster.answers import error_of


def status(reason: str = "", causes: list[dict[str, str]] | None = None, **more: object) -> bytes:
    details = {"causes": causes} if causes else {}
    return orjson.dumps({"kind": "Status", "message": "m", "reason": reason, "details": details, **more})


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (400, Invalid, False),
        (401, Unauthorized, True),
        (403, Forbidden, True),
        (404, Absent, True),
        (409, StaleObject, True),
        (410, Gone, True),
        (422, Invalid, False),
        (429, TooManyRequests, True),
        (500, Unreachable, True),
        (502, Unreachable, True),
        (503, Unreachable, True),
        (504, Unreachable, True),
        (418, Unreachable, True),
    ],
)
@pytest.mark.parametrize("body", [status(), b"<html>proxy</html>", b"", b"[]", b'{"kind":"Status"}'])
def test_every_code_whatever_the_body(code: int, kind: type[ClusterError], retryable: bool, body: bytes) -> None:
    error = error_of(code, body)
    assert type(error) is kind
    assert error.retryable is retryable
    assert error.message


def test_c20_a_field_conflict_names_field_and_owner() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "field": ".spec.replicas", "message": 'conflict with "hpa" using apps/v1'},
        {"reason": "FieldManagerConflict", "field": ".spec.paused", "message": 'conflict with "kubectl" using apps/v1'},
    ]
    error = error_of(409, status("Conflict", causes))
    assert isinstance(error, Conflict)
    assert error.fields == ((".spec.replicas", "hpa"), (".spec.paused", "kubectl"))


def test_a_foreign_uid_is_another_object_not_a_bad_manifest() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}]
    assert type(error_of(422, status("Invalid", causes))) is StaleObject


def test_invalid_names_its_fields() -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.replicas", "message": "must be >= 0"}]
    error = error_of(422, status("Invalid", causes))
    assert isinstance(error, Invalid)
    assert error.fields == (("spec.replicas", "must be >= 0"),)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("0", 1), ("", 1), ("Wed, 21 Oct", 1), ("-3", 1)])
def test_retry_after(header: str, seconds: int) -> None:
    error = error_of(429, status(), {"Retry-After": header})
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def test_a_page_that_expired_is_gone_whatever_its_code() -> None:
    assert type(error_of(400, status("Expired"))) is Gone
