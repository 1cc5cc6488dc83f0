"""The serving engines, by name: one line each."""

from __future__ import annotations

from models_app.engines.base import Engine
from models_app.engines.flexinfer import FlexInferEngine
from models_app.engines.plain import PlainEngine

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (PlainEngine(), FlexInferEngine())}


def engine_of(name: str) -> Engine:
    """The engine called ``name``; KeyError when there is none (a payload is checked before)."""
    return ENGINES[name]
