from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.cluster import (
    Absent,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotInstalled,
    StaleObject,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from fleet.reconcile.failures import outcome_of
from portal.work.domain.conditions import Truth
from portal.work.domain.outcomes import Blocked, Retry


@pytest.mark.parametrize(
    ("error", "outcome", "truth", "reason"),
    [
        (Unreachable("x"), Retry, Truth.UNKNOWN, "ClusterUnreachable"),
        (Unauthorized("x"), Retry, Truth.UNKNOWN, "CredentialRefused"),
        (TooManyRequests("x"), Retry, Truth.UNKNOWN, "ClusterBusy"),
        (Forbidden("x"), Retry, Truth.FALSE, "Forbidden"),
        (StaleObject("x"), Retry, Truth.FALSE, "ChangedMeanwhile"),
        (Absent("x"), Retry, Truth.FALSE, "ClusterNotReady"),
        (Gone("x"), Retry, Truth.FALSE, "ClusterNotReady"),
        (Conflict("x"), Blocked, Truth.FALSE, "FieldConflict"),
        (Invalid("x"), Blocked, Truth.FALSE, "Misconfigured"),
        (NotInstalled("x"), Blocked, Truth.FALSE, "NotInstalled"),
    ],
)
def test_each_error_has_its_outcome(error: ClusterError, outcome: type, truth: Truth, reason: str) -> None:
    result = outcome_of(error, updates={"applied": []})
    assert isinstance(result, outcome)
    assert result.conditions is not None
    assert [(item.status, item.reason, item.message) for item in result.conditions] == [(truth, reason, "x")]
    assert result.updates == {"applied": []}


def test_a_busy_cluster_names_the_delay() -> None:
    result = outcome_of(TooManyRequests("slow down", 17))
    assert isinstance(result, Retry)
    assert result.after == timedelta(seconds=17)


def test_what_waits_for_a_cluster_that_was_away_is_back_soon() -> None:
    away, refused = outcome_of(Unreachable("no answer")), outcome_of(Forbidden("no"))
    assert isinstance(away, Retry)
    assert isinstance(refused, Retry)
    assert away.at_most == timedelta(seconds=30) < refused.at_most


def test_c20_a_conflict_is_shown_with_field_and_owner() -> None:
    result = outcome_of(Conflict("1 conflict", [(".spec.replicas", "hpa")]))
    assert isinstance(result, Blocked)
    assert result.message == "Others own fields that Slipway wants to set: .spec.replicas (owned by hpa)."


def test_a_bad_manifest_is_shown_field_by_field() -> None:
    result = outcome_of(Invalid("bad", [("spec.replicas", "must be >= 0"), ("spec.x", "unknown")]))
    assert isinstance(result, Blocked)
    assert result.message == "spec.replicas: must be >= 0; spec.x: unknown"
