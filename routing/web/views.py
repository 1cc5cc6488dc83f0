"""A project's keys for the gateway: made, shown once, revoked."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_POST

from portal.kernel.clock import now
from portal.kernel.errors import Conflict, InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import permissions_of
from portal.tenancy.selectors.projects import project_get
from portal.tenancy.web.forms import ShapeForm
from routing.domain.keys import LIFETIME_DAYS_MAX
from routing.selectors.keys import key_list
from routing.services.keys import key_create, key_revoke

_EXAMPLE = """from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key="{secret}")
print([model.id for model in client.models.list()])"""


class KeyForm(ShapeForm):
    name = forms.CharField(max_length=80, label="Name", help_text="Who or what will use it.")
    expires_in_days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LIFETIME_DAYS_MAX,
        label="Valid for, in days",
        help_text="Empty: until it is revoked.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(no_store=True)
def keys(request: HttpRequest, public_id: str) -> HttpResponse:
    """The list and the form; the answer to a POST is the only place where the secret is ever seen."""
    project = project_get(actor=request.actor, public_id=public_id)
    form = KeyForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        try:
            _, secret = key_create(actor=request.actor, project=project, **form.cleaned_data)
        except (InvalidInput, Conflict) as error:
            form.refuse(error)
        else:
            form = KeyForm()
    may = permissions_of(actor=request.actor, project=project)
    base_url = f"{settings.GATEWAY_PUBLIC_URL}/v1" if settings.GATEWAY_PUBLIC_URL else ""
    context = {
        "project": project,
        "form": form,
        "secret": secret,
        "example": _EXAMPLE.format(base_url=base_url, secret=secret) if secret and base_url else "",
        "base_url": base_url,
        "keys": list(key_list(actor=request.actor, project=project)[:200]),
        "may_make": Permission.KEY_MANAGE_OWN in may,
        "may_end_own": Permission.KEY_REVOKE_OWN in may,
        "may_all": Permission.KEY_MANAGE in may,
        "now": now(),
    }
    refused = request.method == "POST" and not secret
    return render(request, "routing/keys.html", context, status=400 if refused else 200)


@require_POST
def key_end(request: HttpRequest, public_id: str) -> HttpResponse:
    key = key_revoke(actor=request.actor, public_id=public_id)
    messages.success(request, f"The key “{key.name}” is revoked: within 5 seconds no gateway takes it.")
    return redirect("project-keys", key.project.public_id)
