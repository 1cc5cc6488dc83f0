"""The reader's own tokens for the REST API: made, shown once, revoked."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_POST

from portal.kernel.clock import now
from portal.kernel.errors import Conflict, Forbidden, InvalidInput
from portal.tenancy.selectors.tokens import token_list
from portal.tenancy.services.tokens import EXPIRES_MAX_DAYS, token_create, token_revoke
from portal.tenancy.web.forms import ShapeForm

SCOPES = (("read", "Read only"), ("write", "Read and write"))


class TokenForm(ShapeForm):
    name = forms.CharField(max_length=80, label="Name", help_text="What will use it, such as “nightly export”.")
    scope = forms.ChoiceField(choices=SCOPES, label="May", initial="read")
    expires_in_days = forms.IntegerField(
        min_value=1, max_value=EXPIRES_MAX_DAYS, initial=90, label="Valid for, in days", help_text="At most a year."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(no_store=True)
def tokens(request: HttpRequest) -> HttpResponse:
    """The list and the form; the answer to a POST is the only place where the secret is ever seen."""
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        try:
            _, secret = token_create(
                actor=request.actor,
                name=form.cleaned_data["name"],
                scopes=[form.cleaned_data["scope"]],
                expires_in_days=form.cleaned_data["expires_in_days"],
            )
        except (InvalidInput, Conflict, Forbidden) as error:
            form.refuse(error)
        else:
            form = TokenForm()
    refused = request.method == "POST" and not secret
    context = {"form": form, "secret": secret, "tokens": list(token_list(actor=request.actor)[:200]), "now": now()}
    return render(request, "tenancy/tokens.html", context, status=400 if refused else 200)


@require_POST
def token_end(request: HttpRequest, public_id: str) -> HttpResponse:
    token = token_revoke(actor=request.actor, public_id=public_id)
    messages.success(request, f"The token “{token.name}” is revoked: it is refused everywhere from now on.")
    return redirect("tokens")
