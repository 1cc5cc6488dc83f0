"""The shape of a gateway key: ``slk_`` + 8 characters that find it in lists + 32 that are the secret proper."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from dataclasses import dataclass

MARK = "slk_"
_ALPHABET = string.ascii_letters + string.digits
_SHOWN = 8
_HIDDEN = 32
_KEY = re.compile(rf"{MARK}[A-Za-z0-9]{{{_SHOWN + _HIDDEN}}}")
LIFETIME_DAYS_MAX = 3650


@dataclass(frozen=True, slots=True)
class NewSecret:
    """``secret`` is shown once and kept nowhere; ``prefix`` and ``sha256`` are stored.

    A plain SHA-256 is enough: 32 characters of 62 are 190 random bits, which no one guesses from a digest.
    """

    secret: str
    prefix: str
    sha256: str


def new_secret() -> NewSecret:
    """A fresh key: the text to show once, its prefix to find it by, and the digest to store."""
    text = MARK + "".join(secrets.choice(_ALPHABET) for _ in range(_SHOWN + _HIDDEN))
    return NewSecret(secret=text, prefix=text[: len(MARK) + _SHOWN], sha256=digest(text))


def has_the_shape(secret: str) -> bool:
    """Whether this can be a key at all: guesses of another shape cost no look into the database."""
    return _KEY.fullmatch(secret) is not None


def digest(secret: str) -> str:
    """What of a secret is stored and looked up: SHA-256, hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def bearer(authorization: str) -> str:
    """The secret in an Authorization header, "" when there is none of the Bearer scheme."""
    scheme, _, credential = authorization.strip().partition(" ")
    return credential.strip() if scheme.lower() == "bearer" else ""
