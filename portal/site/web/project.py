"""A project at a glance: what it may use and holds, what runs, and who is in it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from fleet.selectors.grants import grants_with_use
from portal.kernel.errors import Conflict, InvalidInput
from portal.site.selectors.projects import deployment_phases
from portal.tenancy.domain.roles import Permission, ProjectRole
from portal.tenancy.selectors.memberships import membership_list
from portal.tenancy.selectors.permissions import permissions_of
from portal.tenancy.selectors.projects import project_get
from portal.tenancy.services.memberships import membership_remove, membership_set
from portal.tenancy.web.forms import ShapeForm


class MemberForm(ShapeForm):
    email = forms.EmailField(max_length=254, label="E-mail", help_text="Of an account that exists here.")
    role = forms.ChoiceField(
        choices=[(role.value, role.value) for role in ProjectRole],
        label="Role",
        initial=ProjectRole.MEMBER.value,
        help_text="A viewer reads; a member asks and deploys; a lead also decides, and manages members and keys.",
    )


@require_safe
def project(request: HttpRequest, public_id: str) -> HttpResponse:
    return _page(request, project_get(actor=request.actor, public_id=public_id), MemberForm())


@require_POST
def member_set(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give somebody a role, or another one."""
    found = project_get(actor=request.actor, public_id=public_id)
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            made = membership_set(actor=request.actor, project=found, **form.cleaned_data)
        except (InvalidInput, Conflict) as error:
            form.refuse(error)
        else:
            messages.success(request, f"{made.user.name} is {made.role} of {found.name}.")
            return redirect("project", public_id)
    return _page(request, found, form, status=400)


@require_POST
def member_remove(request: HttpRequest, public_id: str, user_id: str) -> HttpResponse:
    found = project_get(actor=request.actor, public_id=public_id)
    membership_remove(actor=request.actor, project=found, user_public_id=user_id)
    messages.success(request, "The membership is taken away; what the person made stays the project's.")
    return redirect("project", public_id)


def _page(request: HttpRequest, found: Any, form: MemberForm, *, status: int = 200) -> HttpResponse:
    may = permissions_of(actor=request.actor, project=found)
    context = {
        "project": found,
        "grants": grants_with_use(project=found),
        "phases": deployment_phases(project=found),
        "members": list(membership_list(actor=request.actor, project=found)),
        "form": form,
        "may_manage": Permission.MEMBER_MANAGE in may,
        "may_ask": Permission.REQUEST_CREATE in may,
    }
    return render(request, "site/project.html", context, status=status)
