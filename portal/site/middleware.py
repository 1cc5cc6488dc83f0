"""What every request passes on its way to a view: an id to follow it by, sign-in, and errors turned into pages.

All three are Django's hybrid kind: they run for plain and for async views alike, and hold no response body back (C34).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import resolve_url
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from portal.audit.domain.actors import Channel
from portal.kernel.errors import InvalidInput, SlipwayError
from portal.site.web.errors import error_answer, unavailable
from portal.tenancy.selectors.people import actor_for

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
NOT_PAGES = ("/api/", "/healthz", "/readyz", "/metrics")
"""Addresses that answer callers themselves: REST knows tokens, probes are anonymous."""


_DATABASE_AWAY = (OperationalError, InterfaceError)


def is_page(request: HttpRequest) -> bool:
    return not request.path_info.startswith(NOT_PAGES)


class RequestIdMiddleware(MiddlewareMixin):
    """One id from click to cluster object: taken from X-Request-ID when it is well-formed, else made; answered back."""

    def process_request(self, request: HttpRequest) -> None:
        given = request.headers.get("X-Request-ID", "")
        request.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request.request_id)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response["X-Request-ID"] = request.request_id
        return response


class SignInMiddleware(LoginRequiredMiddleware):
    """Every page needs a signed-in person, unless its view says otherwise; sets ``request.actor`` for the views.

    A fragment whose session has ended sends the whole page to sign-in, never a form into a table cell (C33).
    """

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if not is_page(request):
            return None
        try:
            signed_in = request.user.is_authenticated
        except _DATABASE_AWAY:
            return unavailable(request)
        if signed_in:
            request.actor = actor_for(request.user, Channel.BROWSER, request_id=request.request_id)
            structlog.contextvars.bind_contextvars(actor=request.actor.id)
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    def handle_no_permission(self, request: HttpRequest, view_func: Callable[..., Any]) -> HttpResponse:
        address = f"{resolve_url(self.get_login_url(view_func))}?{urlencode({'next': page_of(request)})}"
        if request.htmx:
            return HttpResponse(status=401, headers={"HX-Redirect": address})
        return HttpResponse(status=302, headers={"Location": address})


class SlipwayErrorMiddleware(MiddlewareMixin):
    """Errors of services and selectors become a page, or a notice when a fragment asked; REST has its own handler.

    So does a database that is away or busy past its lock timeout: "not available now", and the transaction is rolled back.

    A null character, which no column holds, is refused here: past this point it would be an error of the database.
    """

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if is_page(request) and any("\x00" in text for form in (request.GET, request.POST) for text in _texts(form)):
            return error_answer(request, InvalidInput("A text here holds a null character: leave it out, and repeat."))
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_page(request):
            return None
        if isinstance(exception, SlipwayError):
            return error_answer(request, exception)
        return unavailable(request) if isinstance(exception, _DATABASE_AWAY) else None


def _texts(form: QueryDict) -> Iterator[str]:
    return (text for _, values in form.lists() for text in values)


def page_of(request: HttpRequest) -> str:
    """The page to come back to: what was asked for by GET, else the page that the form or fragment was on."""
    if request.method in {"GET", "HEAD"} and not request.htmx:
        return request.get_full_path()
    page = request.htmx.current_url_abs_path if request.htmx else request.headers.get("Referer", "")
    if not page or not url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}):
        return "/"
    parts = urlsplit(page)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
