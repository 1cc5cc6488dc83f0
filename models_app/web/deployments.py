"""Deployments: the list, and one with all its states apart (contract §2), following what changes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from models_app.domain.payload import REPLICAS_MAX
from models_app.domain.phases import Phase
from models_app.selectors.deployments import deployment_card, deployment_counts, deployment_list, deployment_page
from models_app.selectors.views import DeploymentView
from models_app.services.deployments import deployment_delete, deployment_scale
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.keyset import keyset_page
from portal.tenancy.selectors.projects import project_get, projects_where_may
from portal.tenancy.web.forms import ShapeForm, whole
from portal.tenancy.web.live import live_answer, live_fragment

PAGE_SIZE = 50


class ScaleForm(ShapeForm):
    replicas_min = forms.IntegerField(min_value=0, max_value=REPLICAS_MAX, label="At least", help_text="0 rests it.")
    replicas_max = forms.IntegerField(min_value=1, max_value=REPLICAS_MAX, label="At most", help_text="Held of the grant.")
    version = forms.IntegerField(widget=forms.HiddenInput)


@require_safe
def deployments(request: HttpRequest) -> HttpResponse:
    live = _list(request)
    context = {**live["context"], "body": live_fragment(request, **live)}
    return render(request, "models_app/deployments.html", context)


@require_safe
def deployments_live(request: HttpRequest) -> HttpResponse:
    return live_answer(request, **_list(request))


@require_safe
def deployment(request: HttpRequest, public_id: str) -> HttpResponse:
    view = deployment_page(actor=request.actor, public_id=public_id)
    return _page(request, view, _scale_form(view))


@require_safe
def deployment_live(request: HttpRequest, public_id: str) -> HttpResponse:
    return live_answer(request, **_live(deployment_page(actor=request.actor, public_id=public_id)))


@require_POST
def deployment_rescale(request: HttpRequest, public_id: str) -> HttpResponse:
    """Another replica range; the version of the form tells a stale one."""
    form = ScaleForm(request.POST)
    if form.is_valid():
        try:
            deployment_scale(actor=request.actor, public_id=public_id, **form.cleaned_data)
        except InvalidInput as error:
            form.refuse(error)
        else:
            messages.success(request, "The new range is wanted; the cluster follows.")
            return redirect("deployment", public_id)
    return _page(request, deployment_page(actor=request.actor, public_id=public_id), form, status=400)


@require_POST
def deployment_end(request: HttpRequest, public_id: str) -> HttpResponse:
    """Delete, with the name typed by hand: what it served stops."""
    view = deployment_page(actor=request.actor, public_id=public_id)
    if request.POST.get("confirm", "").strip() != view.deployment.name:
        raise InvalidInput(
            f"To delete it, type its name {view.deployment.name} in the box.",
            fields={"confirm": ["Not the name of this deployment."]},
        )
    deployment_delete(
        actor=request.actor,
        public_id=public_id,
        version=whole(request.POST.get("version", "")),
        reason=request.POST.get("reason", "").strip(),
    )
    messages.success(request, f"{view.deployment.name} is being removed: its pods end what they accepted.")
    return redirect("deployment", public_id)


def _list(request: HttpRequest) -> dict[str, Any]:
    actor = request.actor
    wanted = {name: request.GET[name] for name in ("project", "phase", "gone", "cursor") if request.GET.get(name)}
    project = project_get(actor=actor, public_id=wanted["project"]) if "project" in wanted else None
    rows = deployment_list(actor=actor, project=project, phase=wanted.get("phase"), archived="gone" in wanted)
    page = keyset_page(rows, ordering="-created_at", size=PAGE_SIZE, cursor=wanted.get("cursor"))
    filters = {name: value for name, value in wanted.items() if name != "cursor"}
    kept = urlencode({name: value for name, value in filters.items() if name == "project"})
    counts = deployment_counts(actor=actor)
    return {
        "name": "deployments-body",
        "template": "models_app/_deployments.html",
        "url": f"{reverse('deployment-list-live')}?{urlencode(wanted)}",
        "context": {
            "cards": [deployment_card(row) for row in page.rows],
            "next_cursor": page.next_cursor,
            "filters": filters,
            "project": project,
            "phase": filters.get("phase", ""),
            "gone": "gone" in wanted,
            "kept": f"&{kept}" if kept else "",
            "phases": [(phase.value, counts.get(phase.value, 0)) for phase in Phase if counts.get(phase.value)],
            "may_ask": projects_where_may(actor=actor, permission=Permission.REQUEST_CREATE).exists(),
        },
    }


def _live(view: DeploymentView) -> dict[str, Any]:
    return {
        "name": "deployment-body",
        "template": "models_app/_deployment.html",
        "context": {"view": view, "deployment": view.deployment},
        "url": reverse("deployment-live", args=[view.deployment.public_id]),
    }


def _page(request: HttpRequest, view: DeploymentView, form: ScaleForm, *, status: int = 200) -> HttpResponse:
    context = {
        "view": view,
        "deployment": view.deployment,
        "project": view.deployment.project,
        "form": form,
        "body": live_fragment(request, **_live(view)),
        "gateway": gateway_url(),
    }
    return render(request, "models_app/deployment.html", context, status=status)


def _scale_form(view: DeploymentView) -> ScaleForm:
    row = view.deployment
    return ScaleForm(initial={"replicas_min": row.replicas_min, "replicas_max": row.replicas_max, "version": row.version})


def gateway_url() -> str:
    """The base URL that OpenAI clients are given; "" when this installation names none."""
    url: str = settings.GATEWAY_PUBLIC_URL.rstrip("/")
    return url if not url or url.endswith("/v1") else f"{url}/v1"
