"""Pages of a queryset by the value of the last row seen, never by offset (C36): for REST and for long pages alike.

Every ordering ends with the primary key, so no row is repeated or lost between pages, whatever the ties.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Field, Model, Q, QuerySet

from portal.kernel.errors import InvalidInput

M = TypeVar("M", bound=Model)
_PK_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """``next_cursor`` is None on the last page; it is opaque, and good only with the same ordering."""

    rows: list[M]
    next_cursor: str | None


def keyset_page(queryset: QuerySet[M], *, ordering: str, size: int, cursor: str | None = None) -> Page[M]:
    """At most ``size`` rows after ``cursor``, in one query.

    ``ordering`` is a column (``__`` follows foreign keys) that is never null, with ``-`` for descending; the caller checks
    that it offers it. InvalidInput when ``cursor`` is not one that an earlier page of the same ordering gave.
    """
    descending = ordering.startswith("-")
    column = ordering.removeprefix("-")
    ordered = queryset.order_by(ordering, "-pk" if descending else "pk")
    if cursor is not None:
        value, pk = _decoded(cursor, ordering, queryset.model, column)
        edge, beyond = ("lte", "lt") if descending else ("gte", "gt")
        ordered = ordered.filter(
            Q(**{f"{column}__{edge}": value}), Q(**{f"{column}__{beyond}": value}) | Q(**{f"pk__{beyond}": pk})
        )
    rows = list(ordered[: size + 1])
    more = len(rows) > size
    return Page(rows=rows[:size], next_cursor=_encoded(ordering, rows[size - 1], column) if more else None)


def _encoded(ordering: str, row: Model, column: str) -> str:
    value: Any = row
    for part in column.split("__"):
        value = getattr(value, part)
    shown = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([ordering, shown, row.pk]).encode()).decode()


def _decoded(cursor: str, ordering: str, model: type[Model], column: str) -> tuple[Any, int]:
    try:
        kept, shown, pk = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if kept != ordering or not isinstance(pk, int) or isinstance(pk, bool) or not 0 <= pk <= _PK_MAX:
            raise ValueError("a cursor of another list")
        return _value_of(_field_of(model, column), shown), pk
    except (ValueError, TypeError, OverflowError, ValidationError, FieldDoesNotExist, RecursionError) as error:
        raise InvalidInput(
            "cursor must be the one that `next` gave, with the same ordering; start again without it.",
            fields={"cursor": ["Not a cursor of this list."]},
        ) from error


def _field_of(model: type[Model], column: str) -> Field[Any, Any]:
    *path, last = column.split("__")
    for part in path:
        related = model._meta.get_field(part).related_model
        if not isinstance(related, type):
            raise FieldDoesNotExist(part)
        model = related
    field = model._meta.get_field(last)
    if not isinstance(field, Field):
        raise FieldDoesNotExist(last)
    return field


def _value_of(field: Field[Any, Any], shown: Any) -> Any:
    if shown is None or isinstance(shown, list | dict) or (isinstance(shown, str) and "\x00" in shown):
        raise ValueError("no value of a column")
    value = field.to_python(shown)
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("an instant without a zone")
    if isinstance(value, int) and abs(value) > _PK_MAX:
        raise ValueError("a number beyond the column")
    return value
