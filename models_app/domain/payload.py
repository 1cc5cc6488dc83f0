"""The ask for a model deployment: its shape, and the rules that need nothing but the ask itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from models_app.domain.names import model_name_problem
from models_app.domain.sources import file_problem, source_problem
from portal.kernel.quantities import QuantityError, parse

PINNED = re.compile(r"[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64}")
"""An image by digest, ``registry/path@sha256:<64 hex>`` (D7)."""

REPLICAS_MAX = 100
DEVICES_MAX = 1024
CONTEXT_MAX = 10_000_000
ARGUMENTS_MAX = 40
FORMAT_OF_BACKEND = {"llamacpp": "gguf", "vllm": "safetensors"}
TEXT_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAsk:
    """The payload of a request of kind ``deployment``, typed.

    ``profile`` and ``cluster`` are names; ``cluster`` "" means the only enabled one. ``image`` "" means the compatibility
    cell's. ``cpu`` and ``memory`` are Kubernetes quantities a replica. ``vram`` is what its author says a replica needs, a
    quantity of bytes, "" = not said. ``context_length`` in tokens, None = the model's own.
    """

    name: str
    profile: str
    source: str
    cluster: str = ""
    engine: str = "plain"
    backend: str = "llamacpp"
    model_format: str = ""
    source_revision: str = ""
    source_file: str = ""
    image: str = ""
    devices_per_replica: int = 1
    replicas_min: int = 1
    replicas_max: int = 1
    cpu: str = "4"
    memory: str = "16Gi"
    vram: str = ""
    context_length: int | None = None
    arguments: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """What approval holds: every device at the replica ceiling (Q1)."""
        return self.devices_per_replica * self.replicas_max

    @property
    def vram_bytes(self) -> int | None:
        return int(parse(self.vram)) if self.vram else None

    def as_payload(self) -> dict[str, Any]:
        return {**asdict(self), "arguments": list(self.arguments)}


_NAMES = tuple(field.name for field in fields(DeploymentAsk))
_TEXTS = (
    "name",
    "profile",
    "source",
    "cluster",
    "engine",
    "backend",
    "model_format",
    "source_revision",
    "source_file",
    "image",
)
_PATTERN_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}")


def parsed_ask(payload: Mapping[str, Any]) -> tuple[DeploymentAsk | None, dict[str, list[str]]]:
    """The ask, or (None, problems by field). "" and null are absent; numbers may come as text; nothing is guessed."""
    problems: dict[str, list[str]] = {
        str(name): [f"Not a field of a deployment; it has: {', '.join(_NAMES)}."] for name in payload if name not in _NAMES
    }
    values: dict[str, Any] = {}
    for name in _TEXTS:
        text = _text(payload.get(name), name, problems)
        if text:
            values[name] = text
    minimum = _whole(payload.get("replicas_min"), "replicas_min", 0, REPLICAS_MAX, problems)
    maximum = _whole(payload.get("replicas_max"), "replicas_max", 1, REPLICAS_MAX, problems)
    values["replicas_min"] = 1 if minimum is None else minimum
    values["replicas_max"] = max(1, values["replicas_min"]) if maximum is None else maximum
    devices = _whole_devices(payload.get("devices_per_replica"), problems)
    values["devices_per_replica"] = 1 if devices is None else devices
    context = _whole(payload.get("context_length"), "context_length", 1, CONTEXT_MAX, problems)
    values["context_length"] = context
    for name, default in (("cpu", "4"), ("memory", "16Gi"), ("vram", "")):
        values[name] = _quantity(payload.get(name), name, problems) or default
    values["arguments"] = _arguments(payload.get("arguments"), problems)
    for name in ("name", "profile", "source"):
        if name not in values and name not in problems:
            problems[name] = ["This is needed."]
    if problems:
        return None, problems
    ask = DeploymentAsk(**values)
    if not ask.model_format:
        ask = DeploymentAsk(**{**values, "model_format": FORMAT_OF_BACKEND.get(ask.backend, "")})
    problems = _rule_problems(ask)
    return (None, problems) if problems else (ask, {})


def _rule_problems(ask: DeploymentAsk) -> dict[str, list[str]]:
    found = {
        "name": model_name_problem(ask.name),
        "source": source_problem(ask.source),
        "source_file": file_problem(ask.source_file),
        "image": image_problem(ask.image),
    }
    if ask.replicas_min > ask.replicas_max:
        found["replicas_min"] = f"The minimum {ask.replicas_min} is above the maximum {ask.replicas_max}."
    if ask.source_revision and not _PATTERN_REVISION.fullmatch(ask.source_revision):
        found["source_revision"] = "A branch, tag or commit of at most 80 characters."
    return {name: [text] for name, text in found.items() if text}


def image_problem(image: str) -> str:
    """Why ``image`` cannot be run; "" when it can, or when it is empty (the profile's own image is taken)."""
    if not image or PINNED.fullmatch(image):
        return ""
    return "An image is pinned by digest: registry/name@sha256:<64 hex digits>. A tag can change under you (D7)."


def _text(value: Any, name: str, problems: dict[str, list[str]]) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > TEXT_MAX or any(ord(letter) < 32 for letter in value):
        problems[name] = [f"One line of text, at most {TEXT_MAX} characters."]
        return ""
    return value.strip()


def _whole(value: Any, name: str, low: int, top: int, problems: dict[str, list[str]]) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 12:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= top:
        problems[name] = [f"A whole number from {low} to {top}."]
        return None
    return value


def _whole_devices(value: Any, problems: dict[str, list[str]]) -> int | None:
    """Devices are counted whole: "2" and "2000m" are two, "500m" and "1.5" are refused."""
    if isinstance(value, str) and value and not value.isdecimal():
        try:
            number = parse(value)
        except QuantityError as error:
            problems["devices_per_replica"] = [str(error)]
            return None
        if number != int(number):
            problems["devices_per_replica"] = [f"{value} is no whole device: devices are not divided."]
            return None
        value = int(number)
    return _whole(value, "devices_per_replica", 1, DEVICES_MAX, problems)


def _quantity(value: Any, name: str, problems: dict[str, list[str]]) -> str:
    """The text as given when the API server's grammar takes it and it is above 0."""
    if value is None or value == "":
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > 40:
        problems[name] = ["A quantity such as 4, 500m, 16Gi."]
        return ""
    try:
        number = parse(value)
    except QuantityError as error:
        problems[name] = [str(error)]
        return ""
    if number <= 0:
        problems[name] = ["More than nothing: a quantity above 0."]
        return ""
    return value


def _arguments(value: Any, problems: dict[str, list[str]]) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = value.splitlines()
    good = isinstance(value, list | tuple) and len(value) <= ARGUMENTS_MAX
    if not good or not all(isinstance(item, str) and len(item) <= TEXT_MAX and "\x00" not in item for item in value):
        problems["arguments"] = [f"At most {ARGUMENTS_MAX} arguments, one a line, each at most {TEXT_MAX} characters."]
        return ()
    return tuple(item.strip() for item in value if item.strip())
