"""``<public_id:…>`` in addresses: what an id may look like. Anything else leads nowhere, as an unknown id does.

A URLconf that uses it imports this module, which registers it once a process.
"""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class PublicIdConverter(StringConverter):
    regex = "[0-9A-Za-z_-]{1,63}"


register_converter(PublicIdConverter, "public_id")
