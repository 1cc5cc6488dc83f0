from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.names import (
    Target,
    derived_object_name,
    label_value,
    limit_of,
    model_name_problem,
    object_name_problem,
)
from portal.kernel.ids import new_id

LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


@pytest.mark.parametrize(
    ("target", "limit"),
    [(Target.RAY_CLUSTER, 53), (Target.RAY_JOB, 47), (Target.RAY_SERVICE, 47), (Target.DEPLOYMENT, 63)],
)
def test_c23_a_typed_name_beyond_the_limit_is_refused_with_the_limit(target: Target, limit: int) -> None:
    assert object_name_problem("a" * limit, target) == ""
    problem = object_name_problem("a" * (limit + 1), target)
    assert str(limit) in problem
    assert str(limit + 1) in problem


def test_c23_kserve_counts_its_hidden_suffix_and_the_namespace() -> None:
    namespace = "team-vision"
    room = 63 - len("-predictor-") - len(namespace)
    assert limit_of(Target.INFERENCE_SERVICE, namespace=namespace) == room
    assert len("a" * room + "-predictor-" + namespace) == 63
    assert object_name_problem("a" * room, Target.INFERENCE_SERVICE, namespace=namespace) == ""
    assert str(room) in object_name_problem("a" * (room + 1), Target.INFERENCE_SERVICE, namespace=namespace)


@pytest.mark.parametrize("name", ["a.b", "A", "1a", "-a", "a-", "a_b", "", "ü", "a/b", "a b"])
def test_c23_what_no_service_may_be_called_is_refused(name: str) -> None:
    assert object_name_problem(name, Target.DEPLOYMENT) != ""


def test_c23_a_model_id_becomes_a_slug_for_labels() -> None:
    assert label_value("acme/Llama-3.2-3B") == "acme-llama-3-2-3b"


@given(st.text(max_size=200))
def test_any_text_becomes_a_valid_label_value(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert LABEL.fullmatch(value)


@given(st.text(alphabet=string.ascii_lowercase + string.digits + "._-", min_size=1, max_size=63), st.integers(20, 63))
def test_a_derived_name_always_fits_and_is_always_valid(name: str, limit: int) -> None:
    derived = derived_object_name(name, new_id("dep"), limit=limit)
    assert len(derived) <= limit
    assert object_name_problem(derived, Target.DEPLOYMENT) == ""


@given(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=63))
def test_the_same_model_name_twice_gives_two_object_names(name: str) -> None:
    first, second = (derived_object_name(name, new_id("dep"), limit=63) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("name", ["qwen3-8b", "llama-3.2-3b", "a", "0", "a_b", "a" * 63])
def test_a_served_name_may_have_dots(name: str) -> None:
    assert model_name_problem(name) == ""


@pytest.mark.parametrize("name", ["", "A", "acme/x", "-a", "a-", "a b", "a" * 64, "é", "a\n"])
def test_a_served_name_that_is_none_is_refused(name: str) -> None:
    assert model_name_problem(name) != ""


def test_a_refused_name_comes_with_one_that_would_do() -> None:
    assert "acme-llama-3-2-3b" in model_name_problem("acme/Llama-3.2-3B")
