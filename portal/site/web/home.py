"""The start page and the inbox: what a person can do next, in all their projects."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from fleet.selectors.progress import local_progress
from portal.approvals.domain.states import Verdict
from portal.approvals.services.decisions import requests_decide
from portal.site.selectors.home import home_page
from portal.site.selectors.inbox import inbox_page
from portal.tenancy.web.forms import whole
from portal.tenancy.web.live import live_answer, live_fragment


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "site/home.html", {"body": live_fragment(request, **_home(request))})


@require_safe
def home_live(request: HttpRequest) -> HttpResponse:
    return live_answer(request, **_home(request))


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    return render(request, "site/inbox.html", {"body": live_fragment(request, **_inbox(request))})


@require_safe
def inbox_live(request: HttpRequest) -> HttpResponse:
    return live_answer(request, **_inbox(request))


@require_POST
def inbox_decide(request: HttpRequest) -> HttpResponse:
    """Decide one (its own button) or all that are ticked; each by itself, so one refusal stops no other."""
    one = request.POST.get("approve", "")
    chosen = [one] if one else request.POST.getlist("requests")[:200]
    verdict = Verdict.DENY if "deny" in request.POST else Verdict.APPROVE
    if not one and not {"deny", "bulk"} & set(request.POST):
        messages.warning(request, "Nothing was decided: press Approve or Deny.")
        return redirect("inbox")
    if not chosen:
        messages.warning(request, "Nothing was ticked, so nothing was decided.")
        return redirect("inbox")
    versions = {public_id: whole(request.POST.get(f"version-{public_id}", "")) for public_id in chosen}
    outcomes = requests_decide(
        actor=request.actor,
        public_ids=chosen,
        verdict=verdict,
        reason="" if one else str(request.POST.get("reason", ""))[:2000],
        versions={public_id: version for public_id, version in versions.items() if version is not None},
    )
    word = "Approved" if verdict is Verdict.APPROVE else "Denied"
    for outcome in outcomes:
        if outcome.error is not None:
            fields = " ".join(text for texts in outcome.error.fields.values() for text in texts)
            messages.error(request, f"Not decided: {outcome.error.detail} {fields}".strip())
    done = [outcome.request.title for outcome in outcomes if outcome.request is not None]
    if done:
        names = done[0] if len(done) == 1 else f"{len(done)} requests"
        messages.success(request, f"{word}: {names}.")
    return redirect("inbox")


def _home(request: HttpRequest) -> dict[str, Any]:
    page = home_page(actor=request.actor)
    return {
        "name": "home-body",
        "template": "site/_home.html",
        "context": {"home": page, "progress": local_progress()},
        "url": reverse("home-live"),
    }


def _inbox(request: HttpRequest) -> dict[str, Any]:
    page = inbox_page(actor=request.actor)
    return {"name": "inbox-body", "template": "site/_inbox.html", "context": {"inbox": page}, "url": reverse("inbox-live")}
