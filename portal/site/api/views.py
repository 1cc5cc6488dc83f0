"""What belongs to no one app: the OpenAPI file, and the answer to addresses that lead nowhere."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.kernel.errors import NotFound
from portal.tenancy.api.endpoint import Endpoint


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI 3.1 description of this API."""


@extend_schema(exclude=True)
class NowhereView(Endpoint):
    """An address under ``/api/`` that leads nowhere is answered as an unknown id is, whatever the method."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound

    def get(self, request: Request, rest: str) -> Response:
        raise NotFound

    post = put = patch = delete = options = get
