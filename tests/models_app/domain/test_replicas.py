from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.replicas import ReplicaRange, ReplicasPlan, replica_owners, replicas_plan

counts = st.integers(0, 50)


def live(replicas: int, *owners: str) -> dict[str, Any]:
    entries = [
        {"manager": owner, "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        for owner in owners
    ]
    entries.append({"manager": "slipway", "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}})
    return {"metadata": {"managedFields": entries}, "spec": {"replicas": replicas}}


def test_c20_an_autoscaler_that_owns_the_count_keeps_it() -> None:
    plan = replicas_plan(ReplicaRange(1, 5), live=live(3, "kube-controller-manager"), manager="slipway")
    assert plan == ReplicasPlan(value=None)


@given(counts)
def test_c20_at_hand_over_the_sole_owner_does_not_drop_the_field(count: int) -> None:
    plan = replicas_plan(ReplicaRange(1, 5), live=live(count, "slipway"), manager="slipway")
    assert plan == ReplicasPlan(value=count)


def test_c20_once_the_autoscaler_is_co_owner_the_field_is_left_out() -> None:
    both = live(3, "slipway", "kube-controller-manager")
    assert replicas_plan(ReplicaRange(1, 5), live=both, manager="slipway").value is None


def test_a_new_autoscaled_object_is_created_without_the_field() -> None:
    assert replicas_plan(ReplicaRange(2, 5), live=None, manager="slipway").value is None


@given(counts, counts, st.booleans())
def test_without_an_autoscaler_the_row_writes_the_count(count: int, live_count: int, ours: bool) -> None:
    plan = replicas_plan(ReplicaRange(count, count), live=live(live_count, "x"), manager="slipway", autoscaler_was_ours=ours)
    assert plan == ReplicasPlan(value=count, take_back=ours)


@given(st.integers(1, 50))
def test_scaled_to_zero_has_no_autoscaler_that_would_wake_it(maximum: int) -> None:
    wanted = ReplicaRange(0, maximum)
    assert not wanted.autoscaled
    assert replicas_plan(wanted, live=live(2, "slipway"), manager="slipway").value == 0


@pytest.mark.parametrize(("low", "high", "auto"), [(1, 1, False), (0, 0, False), (0, 1, False), (1, 2, True), (3, 9, True)])
def test_what_counts_as_autoscaled(low: int, high: int, auto: bool) -> None:
    assert ReplicaRange(low, high).autoscaled is auto


def test_owners_are_read_from_the_managed_fields_alone() -> None:
    assert replica_owners(live(1, "a", "b")) == {"a", "b"}
    assert replica_owners({"metadata": {}, "spec": {"replicas": 2}}) == set()
