"""Errors as people see them: a whole page, or a notice inside the page when a fragment asked."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.kernel.errors import NotFound, SlipwayError

TITLES = {
    400: "That does not work as it is",
    403: "Your role does not allow this",
    404: "Not found",
    409: "Not possible now",
    412: "Changed since you loaded it",
    429: "Too many tries",
    500: "Something broke on our side",
    503: "Not available now",
}


def error_answer(request: HttpRequest, error: SlipwayError) -> HttpResponse:
    """``error`` as a page with its status; for a fragment, a notice that goes to the page's notice area.

    NotFound shows nothing of the address or the object, so a foreign id and one that never was look alike (A1).
    """
    context = {
        "status": error.status,
        "title": TITLES.get(error.status, TITLES[500]),
        "detail": error.detail,
        "fields": error.fields,
        "code": error.code,
    }
    if getattr(request, "htmx", False):
        return _notice(request, context)
    return render(request, "site/error.html", context, status=error.status)


@login_not_required
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_answer(request, NotFound())


@login_not_required
def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _plain(request, 403, "Your role does not allow this.")


@login_not_required
def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _plain(request, 400, "The request was not understood: go back, load the page again and repeat.")


@login_not_required
def too_many(request: HttpRequest) -> HttpResponse:
    """allauth's answer to too many failed sign-ins."""
    return _plain(request, 429, "Sign-in is locked for some minutes after several failed tries. Wait, then try again.")


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    """Needs neither a session nor the database, which may be what broke."""
    return _bare(request, 500)


def unavailable(request: HttpRequest) -> HttpResponse:
    """The database is away or busy: what was asked was not done, and may be asked again in some seconds."""
    detail = "The database does not answer now. Nothing was changed: try again in some seconds."
    if getattr(request, "htmx", False):
        response = _notice(request, {"status": 503, "title": TITLES[503], "detail": detail, "code": "unavailable"})
    else:
        response = _bare(request, 503)
    response["Retry-After"] = "5"
    return response


def _bare(request: HttpRequest, status: int) -> HttpResponse:
    context = {"status": status, "title": TITLES[status], "request_id": getattr(request, "request_id", "")}
    content = render(None, "site/error_bare.html", context).content  # no request: no context processor may fail again
    return HttpResponse(content, status=status)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form from a session that has ended since; a fragment gets a fragment (C33)."""
    detail = (
        "This page was loaded in a session that has ended. Load it again, then repeat what you did: nothing was changed."
    )
    context = {"status": 403, "title": "Load the page again", "detail": detail, "code": "csrf"}
    if request.headers.get("HX-Request"):  # runs before the htmx middleware has marked the request
        return _notice(request, context)
    return render(request, "site/error.html", context, status=403)


def _plain(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    context = {"status": status, "title": TITLES[status], "detail": detail}
    if request.headers.get("HX-Request"):
        return _notice(request, context)
    return render(request, "site/error.html", context, status=status)


def _notice(request: HttpRequest, context: dict[str, object]) -> HttpResponse:
    response = render(request, "components/_error_notice.html", context, status=int(str(context["status"])))
    response["HX-Retarget"] = "#notices"
    response["HX-Reswap"] = "innerHTML"
    return response
