"""The path parts of REST addresses."""

from __future__ import annotations

from django.urls.converters import StringConverter


class PublicIdConverter(StringConverter):
    """``<public_id:…>``: what an id may look like; anything else leads nowhere, and is answered as an unknown id is."""

    regex = "[0-9A-Za-z_-]{1,63}"
