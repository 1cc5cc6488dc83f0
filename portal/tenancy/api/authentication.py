"""Who calls: a personal token in the Authorization header, or the browser's session with its CSRF token."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.audit.domain.actors import Actor, Channel
from portal.tenancy.selectors.people import actor_for
from portal.tenancy.selectors.tokens import token_authenticate
from portal.tenancy.services.tokens import token_used

_CHALLENGE = 'Bearer realm="slipway"'


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer slp_…``. A wrong, expired or revoked token is 401, whatever else the request carries."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_authenticate(secret.strip())
        if token is None:
            raise AuthenticationFailed(
                "This token is unknown, expired or revoked: make a new one on the tokens page.", code="bad_token"
            )
        token_used(token=token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return _CHALLENGE


class BrowserSessionAuthentication(SessionAuthentication):
    """The session of a signed-in browser; writes need the CSRF token."""

    def authenticate_header(self, request: Request) -> str:
        return _CHALLENGE


def actor_of(request: Request) -> Actor:
    """The actor behind an authenticated REST request, with the request id that the middleware gave it."""
    return actor_for(request.user, Channel.API, request.auth, getattr(request, "request_id", ""))
