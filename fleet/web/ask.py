"""Asking for GPUs: a grant of one profile to a project, new or changed."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from fleet.selectors.profiles import profile_list
from fleet.selectors.usage import zone_of
from portal.approvals.services.requests import request_submit
from portal.approvals.web.asking import preview_of
from portal.kernel.errors import Conflict, InvalidInput
from portal.kernel.gpu_time import day_start
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import require
from portal.tenancy.selectors.projects import project_get
from portal.tenancy.web.forms import ShapeForm

KIND = "grant"


class GrantForm(ShapeForm):
    profile = forms.ChoiceField(required=False, label="GPUs")
    devices = forms.CharField(required=False, max_length=20, initial="1", label="How many at once")
    gpu_hours_per_month = forms.CharField(
        required=False, max_length=20, label="GPU-hours a month", help_text="Empty: no limit."
    )
    starts_at = forms.DateField(
        required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}), help_text="Empty: from approval."
    )
    ends_at = forms.DateField(
        required=False,
        label="Until",
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="The start of this day; empty: until revoked.",
    )
    justification = forms.CharField(
        required=False,
        max_length=2000,
        label="What they are for",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Whoever decides reads this.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["profile"].choices = [(row.name, row.title) for row in profile_list(enabled_only=True)]
        for name in ("devices", "gpu_hours_per_month"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"

    def payload(self, project: Any) -> dict[str, str]:
        """What was filled in; days begin on the wall clocks of the project's zone."""
        zone = zone_of(project)
        values: dict[str, str] = {}
        for name, value in self.cleaned_data.items():
            if value and name != "justification":
                values[name] = day_start(value, zone).isoformat() if isinstance(value, date) else value
        return values

    def groups(self) -> list[tuple[str, bool, list[Any]]]:
        return [
            ("GPUs", False, [self[name] for name in ("profile", "devices", "gpu_hours_per_month")]),
            ("When and why", False, [self[name] for name in ("starts_at", "ends_at", "justification")]),
        ]


@require_http_methods(["GET", "HEAD", "POST"])
def ask_grant(request: HttpRequest, public_id: str) -> HttpResponse:
    """The form; a POST sends it, or with ``check`` only shows what it would mean."""
    project = project_get(actor=request.actor, public_id=public_id)
    require(actor=request.actor, permission=Permission.REQUEST_CREATE, project=project)
    form = GrantForm(request.POST or None)
    status = 200
    looked = None
    if request.method == "POST":
        if form.is_valid() and "check" in request.POST:
            looked = preview_of(actor=request.actor, kind=KIND, project=project, payload=form.payload(project), form=form)
        elif form.is_valid():
            try:
                made = request_submit(
                    actor=request.actor,
                    kind=KIND,
                    project=project,
                    payload=form.payload(project),
                    justification=form.cleaned_data["justification"],
                )
            except (InvalidInput, Conflict) as error:
                form.refuse(error)
            else:
                messages.success(request, "Asked. You see here when it is decided.")
                return redirect("request", made.public_id)
        status = 400 if form.errors else 200
    context = {
        "project": project,
        "form": form,
        "heading": "Ask for GPUs",
        "preview_url": reverse("ask-grant-preview", args=[project.public_id]),
        **(looked or {}),
    }
    return render(request, "fleet/ask_grant.html", context, status=status)


@require_POST
def ask_grant_preview(request: HttpRequest, public_id: str) -> HttpResponse:
    project = project_get(actor=request.actor, public_id=public_id)
    form = GrantForm(request.POST)
    payload = form.payload(project) if form.is_valid() else {}
    looked = preview_of(actor=request.actor, kind=KIND, project=project, payload=payload, form=form)
    return render(request, "approvals/_looked.html", looked)
