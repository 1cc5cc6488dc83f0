"""How a benchmark prints: its figures as JSON, then one line ``figure <name> <value> <unit>`` for each."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One named value with its unit."""

    name: str
    value: float
    unit: str


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that at least ``share`` (0 to 1) of all do not exceed."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def report(figures: Sequence[Figure], details: dict[str, Any]) -> None:
    """Print the JSON, then the lines."""
    print(json.dumps({"figures": [asdict(figure) for figure in figures], **details}, indent=2, default=str))
    for figure in figures:
        print(f"figure {figure.name} {figure.value:g} {figure.unit}")
