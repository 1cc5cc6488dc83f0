from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.fit import Cell, FitAnswer, Shape, compatibility, device_count, gib, vram
from models_app.domain.quota import GrantRoom, capacity_check, grant_check, hours_text

GIB = 2**30
CELLS = (
    Cell("llamacpp", "gguf", "full", image="i"),
    Cell("vllm", "safetensors", "experimental", image="i"),
    Cell("vllm", "gguf", "unsupported", "vLLM has no kernels for gfx906"),
)
SHAPE = Shape("H100", 80 * GIB, 8)


@pytest.mark.parametrize(
    ("backend", "model_format", "answer"),
    [
        ("llamacpp", "gguf", FitAnswer.FITS),
        ("vllm", "safetensors", FitAnswer.EXPERIMENTAL),
        ("vllm", "gguf", FitAnswer.REFUSED),
        ("llamacpp", "safetensors", FitAnswer.REFUSED),
        ("", "", FitAnswer.REFUSED),
    ],
)
def test_the_cell_decides(backend: str, model_format: str, answer: FitAnswer) -> None:
    check = compatibility(CELLS, profile_title="P", backend=backend, model_format=model_format)
    assert check.answer is answer


def test_an_incompatible_pair_names_the_cell_its_reason_and_what_runs() -> None:
    check = compatibility(CELLS, profile_title="Radeon VII", backend="vllm", model_format="gguf")
    assert check.reason == "Incompatible"
    for part in ("vllm × gguf", "Radeon VII", "no kernels for gfx906", "llamacpp × gguf"):
        assert part in check.text


def test_a_shape_larger_than_any_node_is_refused_with_the_largest_that_fits() -> None:
    check = device_count(SHAPE, devices=9)
    assert check.answer is FitAnswer.REFUSED
    assert "largest that fits is 8" in check.text


@given(st.integers(1, 100), st.integers(1, 100))
def test_a_replica_fits_exactly_when_one_node_is_large_enough(devices: int, largest: int) -> None:
    check = device_count(Shape("P", GIB, largest), devices=devices)
    assert (check.answer is FitAnswer.FITS) is (devices <= largest)
    assert check.answer in (FitAnswer.FITS, FitAnswer.REFUSED)


@pytest.mark.parametrize("largest", [None, 0])
@given(st.integers(1, 1000))
def test_nodes_never_seen_are_unknown_and_refuse_nothing(largest: int | None, devices: int) -> None:
    assert device_count(Shape("P", GIB, largest), devices=devices).answer is FitAnswer.UNKNOWN


def test_vram_that_nobody_states_cannot_be_estimated() -> None:
    check = vram(SHAPE, devices=1, needed_bytes=None)
    assert check.answer is FitAnswer.UNKNOWN
    assert "Cannot estimate" in check.text


@given(st.integers(1, 2**42), st.integers(1, 8))
def test_vram_fits_exactly_when_the_devices_of_a_replica_have_it(needed: int, devices: int) -> None:
    check = vram(SHAPE, devices=devices, needed_bytes=needed)
    assert (check.answer is FitAnswer.FITS) is (needed <= 80 * GIB * devices)
    if check.answer is FitAnswer.REFUSED:
        assert f"{needed - 80 * GIB * devices:,} bytes" in check.text
        assert check.reason == "DoesNotFit"


def test_what_is_missing_comes_with_the_devices_from_which_it_fits() -> None:
    assert "from 3 devices" in vram(SHAPE, devices=2, needed_bytes=161 * GIB).text
    text = vram(SHAPE, devices=8, needed_bytes=1000 * GIB).text
    assert "largest that fits on one node is 640 GiB" in text


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 60))
def test_the_grant_refuses_only_what_it_could_never_hold(total: int, held: int, devices: int) -> None:
    room = GrantRoom(devices=total, free=max(0, total - held))
    answer = grant_check(room, devices=devices, profile_title="P").answer
    if devices > total:
        assert answer is FitAnswer.REFUSED
    elif devices > room.free:
        assert answer is FitAnswer.EXPERIMENTAL
    else:
        assert answer is FitAnswer.FITS


def test_no_grant_is_refused_with_the_way_out() -> None:
    check = grant_check(None, devices=1, profile_title="H100")
    assert check.answer is FitAnswer.REFUSED
    assert "ask for one first" in check.text


@given(st.integers(0, 20), st.integers(1, 8), st.integers(0, 10))
def test_a_full_fleet_lets_it_wait_and_refuses_nothing(free: int, devices: int, replicas: int) -> None:
    check = capacity_check(free=free, nodes=1, devices=devices, replicas=replicas)
    assert (check.answer is FitAnswer.FITS) is (devices * max(1, replicas) <= free)
    assert check.answer is not FitAnswer.REFUSED
    assert capacity_check(free=0, nodes=0, devices=devices, replicas=replicas).answer is FitAnswer.UNKNOWN


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(1, 1, "730 GPU-hours"), (0, 2, "0 to 1,460 GPU-hours"), (8, 8, "5,840 GPU-hours")],
)
def test_hours_a_month(low: int, high: int, text: str) -> None:
    assert hours_text(devices_low=low, devices_high=high) == text


@pytest.mark.parametrize(("count", "text"), [(80 * GIB, "80 GiB"), (GIB // 2, "0.5 GiB"), (1024 * GIB, "1,024 GiB")])
def test_gib(count: int, text: str) -> None:
    assert gib(count) == text
