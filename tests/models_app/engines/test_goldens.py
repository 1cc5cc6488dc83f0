"""Each engine's output, byte for byte, against the golden files (``SLIPWAY_WRITE_GOLDENS=1`` writes them anew)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from models_app.engines.base import rendered
from models_app.engines.registry import ENGINES, engine_of
from tests.models_app.engines.specs import SPECS

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("name", SPECS)
def test_render_is_what_the_golden_file_says(name: str) -> None:
    engine, spec = SPECS[name]
    text = yaml.safe_dump_all(rendered(engine_of(engine), spec), sort_keys=False, allow_unicode=True)
    golden = GOLDENS / f"{name}.yaml"
    if os.environ.get("SLIPWAY_WRITE_GOLDENS"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", SPECS)
def test_equal_specs_render_equal_bytes(name: str) -> None:
    engine, spec = SPECS[name]
    first, second = (yaml.safe_dump_all(rendered(engine_of(engine), spec)) for _ in range(2))
    assert first == second


def test_every_engine_has_a_golden_file_and_every_golden_file_a_spec() -> None:
    assert {engine for engine, _ in SPECS.values()} == set(ENGINES)
    assert {path.stem for path in GOLDENS.glob("*.yaml")} == set(SPECS)
