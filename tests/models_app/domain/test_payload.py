from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.payload import DeploymentAsk, image_problem, parsed_ask
from models_app.domain.sources import ClaimSource, HubSource, file_problem, model_id_of, parsed_source, source_problem

DIGEST = "sha256:" + "0" * 64
SMALL: dict[str, Any] = {"name": "qwen3-8b", "profile": "h100-80gb", "source": "hf://Qwen/Qwen3-8B-GGUF"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from([*DeploymentAsk.__dataclass_fields__])


def parsed(**changes: Any) -> DeploymentAsk:
    ask, problems = parsed_ask({**SMALL, **changes})
    assert problems == {}
    assert ask is not None
    return ask


def refused(**changes: Any) -> dict[str, list[str]]:
    ask, problems = parsed_ask({**SMALL, **changes})
    assert ask is None
    assert problems
    return problems


def test_three_fields_are_enough() -> None:
    ask = parsed()
    assert (ask.engine, ask.backend, ask.model_format, ask.replicas_min, ask.replicas_max) == (
        "plain",
        "llamacpp",
        "gguf",
        1,
        1,
    )
    assert ask.devices == 1


def test_the_stored_payload_parses_to_the_same_ask() -> None:
    ask = parsed(replicas_max=3, devices_per_replica=2, vram="14Gi", context_length=8192, arguments=["--x", "--y=1"])
    assert parsed_ask(ask.as_payload()) == (ask, {})
    assert ask.devices == 6
    assert ask.vram_bytes == 14 * 2**30


@given(st.dictionaries(fields, json_values, max_size=6))
def test_any_json_gives_an_ask_or_problems_and_never_an_error(changes: dict[str, Any]) -> None:
    ask, problems = parsed_ask({**SMALL, **changes})
    assert (ask is None) is bool(problems)
    if ask is not None:
        assert parsed_ask(ask.as_payload())[0] == ask


@pytest.mark.parametrize("missing", ["name", "profile", "source"])
def test_what_is_missing_is_named(missing: str) -> None:
    assert set(refused(**{missing: ""})) == {missing}


def test_an_unknown_field_is_refused_by_its_name() -> None:
    assert set(refused(replica=3)) == {"replica"}


@pytest.mark.parametrize(
    "value", ["1_0", " 1", "1KB", "1 Gi", "0x10", "", None, "abc", "1Gib", "--1", "1e", "-1", "0", "0Gi", True, 1.5]
)
@pytest.mark.parametrize("field", ["cpu", "memory", "vram"])
def test_a_quantity_outside_the_grammar_is_refused(field: str, value: Any) -> None:
    if value in ("", None):
        parsed(**{field: value})
        return
    assert set(refused(**{field: value})) == {field}


@pytest.mark.parametrize("value", ["1", "500m", "1.5Gi", "1e3", "1E3", ".5", "1.", "+2", "12Ki", 4])
def test_every_quantity_of_the_grammar_is_taken_as_written(value: Any) -> None:
    assert parsed(memory=value).memory == str(value)


@pytest.mark.parametrize(("value", "count"), [(1, 1), ("8", 8), ("2000m", 2), ("1k", None), ("2e0", 2)])
def test_devices_are_whole(value: Any, count: int | None) -> None:
    if count is None:
        assert parsed(devices_per_replica=value).devices_per_replica == 1000
    else:
        assert parsed(devices_per_replica=value).devices_per_replica == count


@pytest.mark.parametrize("value", ["500m", "1.5", "0", 0, -1, True, 1.0, "1_0", " 1", "x", 1025, [], {}])
def test_a_part_of_a_device_is_refused(value: Any) -> None:
    assert set(refused(devices_per_replica=value)) == {"devices_per_replica"}


@pytest.mark.parametrize(
    ("low", "high", "field"),
    [
        (3, 2, "replicas_min"),
        (-1, 1, "replicas_min"),
        (0, 0, "replicas_max"),
        (1, 101, "replicas_max"),
        ("x", 1, "replicas_min"),
    ],
)
def test_a_replica_range_that_cannot_be_is_refused(low: Any, high: Any, field: str) -> None:
    assert field in refused(replicas_min=low, replicas_max=high)


def test_the_ceiling_follows_the_floor_unless_said() -> None:
    assert parsed(replicas_min=4).replicas_max == 4
    assert parsed(replicas_min=0).replicas_max == 1


@pytest.mark.parametrize(
    "image", ["nginx", "nginx:1.2", "nginx@sha256:abc", f"NGINX@{DIGEST}", f"x:1@{DIGEST} ", f"@{DIGEST}", "x@md5:0"]
)
def test_an_image_without_a_digest_is_refused(image: str) -> None:
    assert image_problem(image) != ""


def test_an_image_by_digest_is_taken() -> None:
    assert parsed(image=f"registry.example:5000/team/llama.cpp@{DIGEST}").image.endswith(DIGEST)
    assert parsed(image="").image == ""


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("hf://Qwen/Qwen3-8B-GGUF", HubSource("Qwen/Qwen3-8B-GGUF")),
        ("pvc://models/qwen/3.gguf", ClaimSource("models", "qwen/3.gguf")),
    ],
)
def test_sources_that_can_be_served(source: str, parts: Any) -> None:
    assert parsed_source(source) == parts
    assert source_problem(source) == ""


@pytest.mark.parametrize(
    "source",
    [
        "Qwen/Qwen3-8B", "hf://", "hf://a", "hf://a/b/c", "hf://../x", "hf://a/..", "pvc://", "pvc://claim", "pvc://claim/",
        "pvc://claim/../x", "pvc://claim//x", "s3://bucket/key", "oci://x/y", "mlflow://m/1", "http://x/y", "hf://a/b c",
        "hf://a/b$(x)", "pvc://claim/a;b", "hf://" + "a" * 300 + "/b",
    ],
)  # fmt: skip
def test_sources_that_cannot_be_served_say_why(source: str) -> None:
    assert source_problem(source) != ""


@given(st.text(max_size=60))
def test_any_text_is_a_source_or_has_a_problem(text: str) -> None:
    assert (source_problem(text) == "") == isinstance(_parse_or_none(text), HubSource | ClaimSource)


def _parse_or_none(text: str) -> Any:
    try:
        return parsed_source(text)
    except ValueError:
        return None


def test_scheme_that_is_known_but_not_served_yet_says_what_to_do() -> None:
    assert "pvc://" in source_problem("s3://bucket/key")


@pytest.mark.parametrize("path", ["../x", "a/../b", "/a", "a//b", "a b", "a$x", "a" * 301])
def test_a_file_path_stays_inside_its_source(path: str) -> None:
    assert file_problem(path) != ""


def test_the_model_id_is_the_source_without_its_scheme() -> None:
    assert model_id_of("hf://acme/Llama-3.2-3B") == "acme/Llama-3.2-3B"


@pytest.mark.parametrize("revision", ["main", "v1.0", "a" * 40])
def test_a_revision_is_a_branch_tag_or_commit(revision: str) -> None:
    assert parsed(source_revision=revision).source_revision == revision
    assert set(refused(source_revision=f"{revision} ;x")) == {"source_revision"}


def test_arguments_come_one_a_line_from_a_form() -> None:
    assert parsed(arguments="--a\n\n --b=1 \r\n").arguments == ("--a", "--b=1")
    assert set(refused(arguments=["x"] * 41)) == {"arguments"}
    assert set(refused(arguments=[1])) == {"arguments"}
