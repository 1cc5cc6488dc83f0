"""Cursor pages of the REST API: ``{"results": […], "next": "<address>" | null}``."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from portal.kernel.errors import InvalidInput
from portal.tenancy.selectors.keyset import keyset_page

PAGE_SIZE = 50
PAGE_SIZE_MAX = 200


class KeysetPagination(BasePagination):
    """The view offers ``orderings``: columns that are never null, ``-`` for descending, the first by default."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self._request = request
        page = keyset_page(
            queryset, ordering=_ordering(request, view), size=_size(request), cursor=request.query_params.get("cursor")
        )
        self._next_cursor = page.next_cursor
        return page.rows

    def get_paginated_response(self, data: Any) -> Response:
        address = None
        if self._next_cursor is not None:
            here = remove_query_param(self._request.build_absolute_uri(), "cursor")
            address = replace_query_param(here, "cursor", self._next_cursor)
        return Response({"results": data, "next": address})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": "string",
                    "format": "uri",
                    "nullable": True,
                    "description": "Address of the following page; null on the last one.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        orderings = list(_offered(view))
        ordering = {"type": "string", "enum": orderings, "default": orderings[0]}
        limit = {"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE}
        return [
            _parameter("cursor", "Where the page starts: taken from `next`, as it is.", {"type": "string"}),
            _parameter("limit", "Rows a page.", limit),
            _parameter("ordering", "Ties are broken by identity, so no row is lost between pages.", ordering),
        ]


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _offered(view: Any) -> tuple[str, ...]:
    orderings: tuple[str, ...] = view.orderings
    if not orderings:
        raise TypeError(f"{type(view).__name__} pages a list and offers no `orderings`")
    return orderings


def _ordering(request: Request, view: Any) -> str:
    offered = _offered(view)
    chosen = request.query_params.get("ordering", offered[0])
    if chosen not in offered:
        named = ", ".join(offered)
        raise InvalidInput(f"ordering must be one of {named}.", fields={"ordering": [f"One of {named}."]})
    return chosen


def _size(request: Request) -> int:
    raw = request.query_params.get("limit", str(PAGE_SIZE))
    size = int(raw) if raw.isascii() and raw.isdecimal() and len(raw) <= 4 else 0
    if not 1 <= size <= PAGE_SIZE_MAX:
        named = f"limit must be a whole number from 1 to {PAGE_SIZE_MAX}."
        raise InvalidInput(named, fields={"limit": [named]})
    return size
