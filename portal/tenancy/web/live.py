"""Fragments that follow what changes: the page polls each, and an unchanged one costs an empty answer.

The same template makes the fragment in the full page and in the poll's answer, so a page works without JavaScript.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

_MOVING = re.compile(r'(<time[^>]*data-age[^>]*>)[^<]*|(name="csrfmiddlewaretoken" value=")[^"]*')
"""What differs between two renderings of the same facts: ages (the browser counts them on) and masked tokens."""


def live_fragment(request: HttpRequest, *, name: str, template: str, context: Mapping[str, Any], url: str) -> SafeString:
    """``template`` wrapped so that it asks ``url`` every 2 s for a newer self. ``name`` is its element id on the page."""
    body = render_to_string(template, dict(context), request=request)
    seen = hashlib.sha256(_MOVING.sub(r"\1\2", body).encode()).hexdigest()[:16]
    wrapped = render_to_string(
        "components/_live.html",
        {"name": name, "body": mark_safe(body), "seen": seen, "url": url},  # noqa: S308  (a rendered template)
    )
    return mark_safe(wrapped)  # noqa: S308


def live_answer(request: HttpRequest, *, name: str, template: str, context: Mapping[str, Any], url: str) -> HttpResponse:
    """The answer to a poll: the newer fragment, or 204 when the one that was seen still stands."""
    fragment = live_fragment(request, name=name, template=template, context=context, url=url)
    seen = request.GET.get("seen", "")
    unchanged = bool(seen) and f'"seen": "{seen}"' in fragment
    response = HttpResponse(status=204) if unchanged else HttpResponse(fragment)
    response["Cache-Control"] = "no-store"
    return response
