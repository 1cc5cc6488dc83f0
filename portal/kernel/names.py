"""Names for the cluster (contract D1): derived once, stored, fitting the tightest limit that hangs on them."""

from __future__ import annotations

import hashlib
import re
import unicodedata

DNS_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
DNS_LABEL_MAX = 63


def slugify(text: str) -> str:
    """Lower-case letters, digits and single dashes, starting with a letter; "" when nothing is left of ``text``."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return slug if not slug or slug[0].isalpha() else f"x-{slug}"


def shortened(name: str, limit: int = DNS_LABEL_MAX) -> str:
    """``name`` itself when it fits ``limit`` characters, else its head and 8 hex digits of its SHA-256."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: limit - 9].rstrip('-')}-{digest}"
