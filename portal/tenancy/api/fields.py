"""Shapes that more than one endpoint takes or gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

_DEPTH_MAX = 20
_VALUES_MAX = 2000


class PublicIdField(serializers.CharField):
    """The public id of an object that the caller names; that it exists is for the selector to say."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=63, **kwargs)


@extend_schema_field({"type": "object", "additionalProperties": True})
class JsonObjectField(serializers.DictField):
    """A free JSON object that the database can hold: no null characters or lone surrogates, finite numbers, no abyss."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value: dict[str, Any] = super().to_internal_value(data)
        _check_storable(value)
        return value


class TextMapField(serializers.DictField):
    """Text to text, such as labels or environment variables, both of which the database can hold."""

    def __init__(self, *, max_length: int, **kwargs: Any) -> None:
        super().__init__(child=serializers.CharField(max_length=max_length, allow_blank=True), **kwargs)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        value: dict[str, str] = super().to_internal_value(data)
        _check_storable(value)
        return value


class Text(serializers.CharField):
    """A text of people: trimmed, possibly empty."""

    def __init__(self, *, max_length: int, **kwargs: Any) -> None:
        kwargs.setdefault("allow_blank", True)
        super().__init__(max_length=max_length, **kwargs)


class ReasonSerializer(serializers.Serializer[Any]):
    """Why, for its author and the audit."""

    reason = Text(max_length=2000, required=False, default="")


class NamedSerializer(serializers.Serializer[Any]):
    """Something else's id and shown name."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()


def _check_storable(value: dict[str, Any]) -> None:
    for count, (depth, item) in enumerate(_walk(value), 1):
        if depth > _DEPTH_MAX or count > _VALUES_MAX:
            raise serializers.ValidationError(f"At most {_DEPTH_MAX} levels and {_VALUES_MAX} values.")
        if isinstance(item, float) and not math.isfinite(item):
            raise serializers.ValidationError("A number here is beyond what can be kept.")
        if isinstance(item, str) and ("\x00" in item or _unpaired(item)):
            raise serializers.ValidationError("A text here holds a null character or half of a surrogate pair.")


def _walk(value: Any, depth: int = 1) -> Iterator[tuple[int, Any]]:
    waiting = [(depth, value)]
    while waiting:
        level, item = waiting.pop()
        yield level, item
        if isinstance(item, dict):
            waiting.extend((level + 1, part) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            waiting.extend((level + 1, part) for part in item)


def _unpaired(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
