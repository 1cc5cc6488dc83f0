"""What a request would mean, beside its half-filled form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from portal.approvals.selectors.requests import request_preview
from portal.audit.domain.actors import Actor
from portal.kernel.errors import Conflict, InvalidInput


def preview_of(*, actor: Actor, kind: str, project: Any, payload: Mapping[str, Any], form: forms.Form) -> dict[str, Any]:
    """Context of ``approvals/_looked.html``: the ``preview``, or the ``problems`` (label, text) that stand before it."""
    try:
        return {"preview": request_preview(actor=actor, kind=kind, project=project, payload=payload), "problems": []}
    except (InvalidInput, Conflict) as error:
        problems = [
            (form.fields[name].label if name in form.fields else name.replace("_", " "), text)
            for name, texts in error.fields.items()
            for text in texts
        ]
        return {"preview": None, "problems": problems or [("", error.detail)]}
