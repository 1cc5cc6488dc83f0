"""Callers of the REST API, each with a token of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.audit.domain.actors import Scope
from portal.tenancy.models import User
from portal.tenancy.services.tokens import token_create
from tests.cast import Cast, actor_of, make_cluster, make_deployment, make_grant, make_profile

Api = Callable[..., APIClient]


def client_of(user: User, *, scopes: tuple[Scope, ...] = (Scope.WRITE,)) -> APIClient:
    """A client that sends a fresh token of ``user``; paths are given without ``/api/v1/``."""
    _, secret = token_create(actor=actor_of(user), name="test", scopes=scopes, expires_in_days=1)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}", raise_request_exception=True)
    client.default_format = "json"
    return client


@pytest.fixture
def api(cast: Cast) -> Api:
    """``api("member")`` calls with a token of that member of the cast."""

    def caller(name: str, **options: Any) -> APIClient:
        return client_of(cast.people()[name], **options)

    return caller


@pytest.fixture
def deployment(cast: Cast) -> Any:
    """A declared deployment of the cast's project, on a grant of 8 devices."""
    grant = make_grant(cast.project, make_profile("h100"), devices=8)
    return make_deployment(grant, make_cluster("local"), author=cast.member, name="tiny-chat")
