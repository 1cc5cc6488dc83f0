"""The two bases of every REST view: ``Endpoint`` for one object or act, ``ListEndpoint`` for a paged list."""

from __future__ import annotations

from typing import Any

import structlog
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from portal.audit.domain.actors import Actor
from portal.tenancy.api.authentication import actor_of
from portal.tenancy.api.pages import KeysetPagination


class Endpoint(APIView):
    """``actor`` is who calls. Views read the body's shape with ``body`` and let services decide."""

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        actor = self.actor
        structlog.contextvars.bind_contextvars(actor=actor.id, token_id=actor.token_id)

    def body(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """The request body in the shape of ``serializer``; ValidationError names each wrong field."""
        return _checked(serializer, self.request.data)

    def query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """The query string in the shape of ``serializer``."""
        return _checked(serializer, self.request.query_params)


class ListEndpoint(Endpoint, ListModelMixin, GenericAPIView[Any]):
    """A paged list: ``rows()`` gives a selector's queryset, ``orderings`` what the caller may sort by."""

    pagination_class = KeysetPagination
    orderings: tuple[str, ...] = ()

    def rows(self) -> Any:
        raise NotImplementedError

    def get_queryset(self) -> Any:
        return self.rows()

    def context_of(self, rows: list[Any]) -> dict[str, Any]:
        """What the serializer needs beside one page of ``rows``, read for all of them at once."""
        return {}

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        context = {**self.get_serializer_context(), **self.context_of(page)}
        return self.get_paginated_response(self.get_serializer_class()(page, many=True, context=context).data)


def _checked(serializer: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    checked = serializer(data=data)
    checked.is_valid(raise_exception=True)
    return checked.validated_data
