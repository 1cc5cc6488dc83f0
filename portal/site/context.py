"""What the frame around every page shows; read only when a full page is rendered, never for a fragment."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from portal.site.selectors.chrome import chrome_of


def chrome(request: HttpRequest) -> dict[str, Any]:
    """``chrome``: what waits for the reader's decision and which doors the navigation offers, one query when used."""
    actor = getattr(request, "actor", None)
    if actor is None:
        return {"chrome": None}
    if not hasattr(request, "chrome"):  # one for the page and the fragments in it
        request.chrome = SimpleLazyObject(lambda: chrome_of(actor=actor))
    return {"chrome": request.chrome}
