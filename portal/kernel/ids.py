"""Public ids: a short prefix that names the kind and 100 random bits, valid as a Kubernetes label value."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 20


def new_id(prefix: str) -> str:
    """``new_id("dep")`` -> ``dep_5q2m…``: 20 characters of Crockford's base32 (no i, l, o, u) behind the prefix."""
    return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
