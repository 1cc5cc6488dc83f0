"""Does it fit (contract §2, M1): the compatibility cell, the device count, and VRAM where its author states it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FitAnswer(StrEnum):
    """``unknown`` is never turned into "fits" (M1)."""

    FITS = "fits"
    EXPERIMENTAL = "experimental"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cell:
    """One backend × format of a profile's matrix; ``support`` is full, experimental or unsupported."""

    backend: str
    model_format: str
    support: str
    reason: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """``largest_node``: devices of the profile that its biggest node has; None when no node of it was ever seen."""

    profile_title: str
    device_vram_bytes: int
    largest_node: int | None


@dataclass(frozen=True, slots=True)
class FitCheck:
    """One question and its answer, with the numbers; ``reason`` is the contract's word for a refusal."""

    name: str
    answer: FitAnswer
    text: str
    field: str = ""
    reason: str = ""


def compatibility(cells: tuple[Cell, ...], *, profile_title: str, backend: str, model_format: str) -> FitCheck:
    """The cell that backend × format falls on; a missing one is incompatible, and the ones that work are named."""
    cell = next((item for item in cells if (item.backend, item.model_format) == (backend, model_format)), None)
    pair = f"{backend} × {model_format}"
    if cell is None or cell.support == "unsupported":
        why = cell.reason if cell and cell.reason else "the profile's matrix has no such cell"
        working = [f"{item.backend} × {item.model_format}" for item in cells if item.support != "unsupported"]
        way_out = f" What runs there: {', '.join(working)}." if working else " Nothing runs there yet."
        return FitCheck(
            "compatibility",
            FitAnswer.REFUSED,
            f"{pair} does not run on {profile_title}: {why}.{way_out}",
            "backend",
            "Incompatible",
        )
    if cell.support == "experimental":
        text = f"{pair} is experimental on {profile_title}."
        return FitCheck("compatibility", FitAnswer.EXPERIMENTAL, text, "backend")
    return FitCheck("compatibility", FitAnswer.FITS, f"{pair} is fully supported on {profile_title}.", "backend")


def device_count(shape: Shape, *, devices: int) -> FitCheck:
    """A replica's devices are on one node, so no node may be too small for them; else refused with the largest that fits."""
    if shape.largest_node is None:
        text = f"No node of {shape.profile_title} was seen yet: whether {devices} devices fit on one is unknown."
        return FitCheck("devices", FitAnswer.UNKNOWN, text, "devices_per_replica")
    if shape.largest_node == 0:
        text = f"No node offers devices of {shape.profile_title} now."
        return FitCheck("devices", FitAnswer.UNKNOWN, text, "devices_per_replica")
    if devices > shape.largest_node:
        text = (
            f"A replica wants {devices} devices; the largest node of {shape.profile_title} has {shape.largest_node}. "
            f"The largest that fits is {shape.largest_node} devices a replica."
        )
        return FitCheck("devices", FitAnswer.REFUSED, text, "devices_per_replica", "NoMatchingProfile")
    text = f"{devices} of {shape.largest_node} devices of the largest node."
    return FitCheck("devices", FitAnswer.FITS, text, "devices_per_replica")


def vram(shape: Shape, *, devices: int, needed_bytes: int | None) -> FitCheck:
    """VRAM as its author states it, against the devices of a replica; not stated = cannot estimate (M1)."""
    if needed_bytes is None:
        return FitCheck(
            "vram", FitAnswer.UNKNOWN, "Cannot estimate: state the VRAM a replica needs to have it checked.", "vram"
        )
    offered = shape.device_vram_bytes * devices
    if needed_bytes <= offered:
        return FitCheck("vram", FitAnswer.FITS, f"{gib(needed_bytes)} of {gib(offered)} VRAM.", "vram")
    missing = needed_bytes - offered
    enough = -(-needed_bytes // shape.device_vram_bytes) if shape.device_vram_bytes else 0
    way_out = "Take a larger profile, or a smaller quantization."
    if enough and (shape.largest_node or 0) >= enough:
        way_out = f"It fits from {enough} devices a replica on."
    elif shape.largest_node:
        largest = gib(shape.device_vram_bytes * shape.largest_node)
        way_out = f"The largest that fits on one node is {largest}. {way_out}"
    text = f"{gib(needed_bytes)} VRAM needed, {gib(offered)} there: {gib(missing)} ({missing:,} bytes) missing. {way_out}"
    return FitCheck("vram", FitAnswer.REFUSED, text, "vram", "DoesNotFit")


def gib(count: int) -> str:
    """Bytes in GiB with one decimal, trailing zero dropped: ``80 GiB``, ``12.5 GiB``."""
    text = f"{count / 2**30:,.1f}".removesuffix(".0")
    return f"{text} GiB"
