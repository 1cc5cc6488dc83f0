"""Requests: the list, one with its story, and the acts the table of moves and the reader's role allow (POST only, C37)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from portal.approvals.domain.states import RequestState, Verdict
from portal.approvals.kinds import kind_of
from portal.approvals.selectors.requests import acts_on, request_get, request_list, request_outlook
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_revoke, request_withdraw
from portal.kernel.errors import SlipwayError
from portal.tenancy.selectors.keyset import keyset_page
from portal.tenancy.selectors.projects import project_get
from portal.tenancy.web.forms import whole
from portal.tenancy.web.live import live_answer, live_fragment

PAGE_SIZE = 50
_WORDS = {
    "name": "Model name",
    "source": "Model files",
    "source_revision": "Revision",
    "source_file": "GGUF file",
    "profile": "GPUs",
    "devices": "How many",
    "devices_per_replica": "GPUs a replica",
    "replicas_min": "Replicas, at least",
    "replicas_max": "Replicas, at most",
    "gpu_hours_per_month": "GPU-hours a month",
    "starts_at": "From",
    "ends_at": "Until",
    "vram": "VRAM it needs",
    "backend": "Engine",
    "model_format": "Format",
    "engine": "Run as",
    "cluster": "Cluster",
    "cpu": "CPU",
    "memory": "Memory",
    "context_length": "Context, in tokens",
    "image": "Image",
    "arguments": "Extra arguments",
}
"""A payload's fields in the order people read them, in the words of the forms; others follow under their own names."""


@require_safe
def requests(request: HttpRequest) -> HttpResponse:
    live = _list(request)
    return render(request, "approvals/requests.html", {**live["context"], "body": live_fragment(request, **live)})


@require_safe
def requests_live(request: HttpRequest) -> HttpResponse:
    return live_answer(request, **_list(request))


@require_safe
def request_detail(request: HttpRequest, public_id: str) -> HttpResponse:
    row = request_get(actor=request.actor, public_id=public_id)
    context = {
        "row": row,
        "project": row.project,
        "label": kind_of(row.kind).label,
        "asked": _asked(row),
        "body": live_fragment(request, **_live(request, row)),
    }
    return render(request, "approvals/request.html", context)


@require_safe
def request_live(request: HttpRequest, public_id: str) -> HttpResponse:
    return live_answer(request, **_live(request, request_get(actor=request.actor, public_id=public_id)))


@require_POST
def request_approve(request: HttpRequest, public_id: str) -> HttpResponse:
    row = request_decide(
        actor=request.actor,
        public_id=public_id,
        verdict=Verdict.APPROVE,
        reason=_reason(request),
        version=whole(request.POST.get("version", "")),
    )
    messages.success(request, f"Approved: {row.title}. Its devices are held.")
    return redirect("request", public_id)


@require_POST
def request_deny(request: HttpRequest, public_id: str) -> HttpResponse:
    row = request_decide(
        actor=request.actor,
        public_id=public_id,
        verdict=Verdict.DENY,
        reason=_reason(request),
        version=whole(request.POST.get("version", "")),
    )
    messages.success(request, f"Denied: {row.title}. Its author reads your reason.")
    return redirect("request", public_id)


@require_POST
def request_take_back(request: HttpRequest, public_id: str) -> HttpResponse:
    request_withdraw(actor=request.actor, public_id=public_id, version=whole(request.POST.get("version", "")))
    messages.success(request, "Withdrawn.")
    return redirect("request", public_id)


@require_POST
def request_undo(request: HttpRequest, public_id: str) -> HttpResponse:
    request_revoke(
        actor=request.actor,
        public_id=public_id,
        reason=_reason(request),
        version=whole(request.POST.get("version", "")),
    )
    messages.success(request, "Revoked: what it had made is being removed.")
    return redirect("request", public_id)


def _list(request: HttpRequest) -> dict[str, Any]:
    wanted = {name: request.GET[name] for name in ("project", "state", "cursor") if request.GET.get(name)}
    project = project_get(actor=request.actor, public_id=wanted["project"]) if "project" in wanted else None
    rows = request_list(actor=request.actor, project=project, state=wanted.get("state"))
    page = keyset_page(rows, ordering="-created_at", size=PAGE_SIZE, cursor=wanted.get("cursor"))
    filters = {name: value for name, value in wanted.items() if name != "cursor"}
    kept = urlencode({name: value for name, value in filters.items() if name == "project"})
    return {
        "name": "requests-body",
        "template": "approvals/_requests.html",
        "url": f"{reverse('request-list-live')}?{urlencode(wanted)}",
        "context": {
            "rows": page.rows,
            "next_cursor": page.next_cursor,
            "filters": filters,
            "project": project,
            "state_wanted": filters.get("state", ""),
            "kept": f"&{kept}" if kept else "",
            "states": [state.value for state in RequestState if state is not RequestState.DRAFT],
        },
    }


def _live(request: HttpRequest, row: Any) -> dict[str, Any]:
    """State, checks as of now and the acts; the checks only while somebody still has to decide."""
    preview, unsure = None, ""
    if row.state == RequestState.SUBMITTED:
        try:
            preview = request_outlook(actor=request.actor, request=row)
        except SlipwayError as error:
            unsure = error.detail
    context = {
        "row": row,
        "acts": {act.value for act in acts_on(actor=request.actor, request=row)},
        "own": row.requester_id == request.actor.user_pk,
        "preview": preview,
        "unsure": unsure,
        "story": _story(row),
    }
    return {
        "name": "request-body",
        "template": "approvals/_request.html",
        "context": context,
        "url": reverse("request-live", args=[row.public_id]),
    }


def _asked(row: Any) -> list[tuple[str, Any]]:
    """(label, value) of what was filled in."""
    order = {name: place for place, name in enumerate(_WORDS)}
    given = [(name, value) for name, value in row.payload.items() if value not in ("", None, [])]
    given.sort(key=lambda item: (order.get(item[0], len(order)), item[0]))
    return [
        (_WORDS.get(name, name.replace("_", " ")), " ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in given
    ]


def _story(row: Any) -> list[tuple[Any, str, str, str]]:
    """(when, tone, what, why) in the order of time."""
    steps = [(row.submitted_at, "info", f"Asked by {row.requester.name}", "")]
    for decision in row.decisions.all():
        approved = decision.verdict == Verdict.APPROVE
        word, tone = ("Approved", "good") if approved else ("Denied", "bad")
        steps.append((decision.at, tone, f"{word} by {decision.decider.name}", decision.reason))
    steps.append((row.fulfilled_at, "good", "Came true: seen as it was asked for", ""))
    if row.state != RequestState.DENIED:  # a denial is among the decisions
        steps.append((row.ended_at, "quiet", row.state.capitalize(), ""))
    return sorted((step for step in steps if step[0] is not None), key=lambda step: step[0])


def _reason(request: HttpRequest) -> str:
    return str(request.POST.get("reason", ""))[:2000]
