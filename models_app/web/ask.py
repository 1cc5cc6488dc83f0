"""Asking for a model: the form, what it would mean while it is filled in, and sending it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from models_app.selectors.choices import DeploymentChoices, deployment_form_choices
from portal.approvals.services.requests import request_submit
from portal.approvals.web.asking import preview_of
from portal.kernel.errors import Conflict, InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.projects import project_get, projects_where_may
from portal.tenancy.web.forms import ShapeForm

KIND = "deployment"


class ModelForm(ShapeForm):
    """Text throughout: what each field may hold is the request kind's rule, and its words are shown at the field."""

    name = forms.CharField(
        required=False, max_length=300, label="Model name", help_text="What API callers say, such as “llama-3-8b”."
    )
    source = forms.CharField(
        required=False, max_length=600, label="Model files", help_text="hf://organization/name or pvc://claim/path"
    )
    source_file = forms.CharField(required=False, max_length=600, label="GGUF file", help_text="llama.cpp needs it.")
    source_revision = forms.CharField(required=False, max_length=300, label="Revision", help_text="Branch, tag or commit.")
    profile = forms.ChoiceField(required=False, label="GPUs", help_text="What this project was granted.")
    devices_per_replica = forms.CharField(required=False, max_length=20, initial="1", label="GPUs a replica")
    replicas_min = forms.CharField(required=False, max_length=20, initial="1", label="Replicas, at least")
    replicas_max = forms.CharField(required=False, max_length=20, initial="1", label="Replicas, at most")
    vram = forms.CharField(
        required=False, max_length=40, label="VRAM it needs", help_text="A replica's, such as 14Gi. Empty: cannot estimate."
    )
    backend = forms.ChoiceField(required=False, label="Engine")
    model_format = forms.ChoiceField(required=False, label="Format")
    engine = forms.ChoiceField(required=False, label="Run as")
    cluster = forms.ChoiceField(required=False, label="Cluster")
    cpu = forms.CharField(required=False, max_length=40, initial="4", label="CPU", help_text="A replica's: 4, 500m.")
    memory = forms.CharField(required=False, max_length=40, initial="16Gi", label="Memory", help_text="A replica's.")
    context_length = forms.CharField(required=False, max_length=20, label="Context, in tokens", help_text="Empty: its own.")
    image = forms.CharField(
        required=False, max_length=400, label="Image", help_text="Empty: the tested one. Else registry/name@sha256:…"
    )
    arguments = forms.CharField(
        required=False, label="Extra arguments", widget=forms.Textarea(attrs={"rows": 3}), help_text="One a line."
    )
    justification = forms.CharField(
        required=False,
        max_length=2000,
        label="What it is for",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Whoever decides reads this.",
    )

    def __init__(self, *args: Any, choices: DeploymentChoices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["profile"].choices = [
            (use.grant.profile.name, f"{use.grant.profile.title}: {use.free} of {use.grant.devices} granted free")
            for use in choices.grants
        ]
        self.fields["backend"].choices = choices.backends
        self.fields["model_format"].choices = [("", "the engine's own"), *choices.model_formats]
        self.fields["engine"].choices = [
            (item.name, f"{item.label} ({item.note})" if item.note else item.label) for item in choices.engines
        ]
        self.fields["cluster"].choices = [
            ("", "the only one" if len(choices.clusters) == 1 else "choose"),
            *((cluster.name, cluster.name) for cluster in choices.clusters),
        ]
        for name in ("devices_per_replica", "replicas_min", "replicas_max", "context_length"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"
        for name in ("name", "source", "profile"):
            self.fields[name].widget.attrs["aria-required"] = "true"
        for name in ("name", "source", "source_file", "image"):
            self.fields[name].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def payload(self) -> dict[str, str]:
        """What was filled in; empty is absent."""
        return {name: value for name, value in self.cleaned_data.items() if value and name != "justification"}

    def groups(self) -> list[tuple[str, bool, list[Any]]]:
        """(legend, folded, fields) in the order they are asked."""
        return [
            ("Model", False, [self[name] for name in ("name", "source", "backend", "source_file", "justification")]),
            (
                "GPUs",
                False,
                [self[name] for name in _GPUS],
            ),
            (
                "More",
                not any(name in self.errors for name in _FOLDED),
                [self[name] for name in _FOLDED],
            ),
        ]


_GPUS = ("profile", "devices_per_replica", "replicas_min", "replicas_max", "vram")
_FOLDED = ("source_revision", "model_format", "engine", "cluster", "cpu", "memory", "context_length", "image", "arguments")


@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """In which project? With one there is nothing to choose."""
    projects = list(projects_where_may(actor=request.actor, permission=Permission.REQUEST_CREATE)[:200])
    open_ones = [project for project in projects if project.state == "active"]
    if len(open_ones) == 1:
        return redirect("ask-model", open_ones[0].public_id)
    return render(request, "models_app/ask.html", {"projects": open_ones})


@require_http_methods(["GET", "HEAD", "POST"])
def ask_model(request: HttpRequest, public_id: str) -> HttpResponse:
    """The form; a POST sends it, or with ``check`` only shows what it would mean (for browsers without scripts)."""
    project = project_get(actor=request.actor, public_id=public_id)
    choices = deployment_form_choices(actor=request.actor, project=project)
    form = ModelForm(request.POST or None, choices=choices)
    status = 200
    looked = None
    if request.method == "POST":
        if form.is_valid() and "check" in request.POST:
            looked = preview_of(actor=request.actor, kind=KIND, project=project, payload=form.payload(), form=form)
        elif form.is_valid():
            try:
                made = request_submit(
                    actor=request.actor,
                    kind=KIND,
                    project=project,
                    payload=form.payload(),
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
        "heading": "Ask for a model",
        "nothing": not choices.grants,
        "preview_url": reverse("ask-model-preview", args=[project.public_id]),
        **(looked or {}),
    }
    return render(request, "models_app/ask_model.html", context, status=status)


@require_POST
def ask_model_preview(request: HttpRequest, public_id: str) -> HttpResponse:
    project = project_get(actor=request.actor, public_id=public_id)
    form = ModelForm(request.POST, choices=deployment_form_choices(actor=request.actor, project=project))
    payload = form.payload() if form.is_valid() else {}
    looked = preview_of(actor=request.actor, kind=KIND, project=project, payload=payload, form=form)
    return render(request, "approvals/_looked.html", looked)
