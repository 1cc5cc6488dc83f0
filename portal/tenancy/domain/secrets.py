"""The secrets of tokens: how they are made, found and compared. Only the SHA-256 is ever stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

TOKEN_MARK = "slp_"  # noqa: S105 - the public mark that secret scanners look for
_PREFIX_LENGTH = 12
_TOKEN = re.compile(r"slp_[0-9a-z]{8}_[0-9A-Za-z_-]{43}")


@dataclass(frozen=True, slots=True)
class NewSecret:
    """``secret`` is shown once; ``prefix`` (``slp_`` and 8 characters) finds the row; ``sha256`` is hex."""

    secret: str
    prefix: str
    sha256: str


def new_token_secret() -> NewSecret:
    """A fresh token secret, ``slp_<8 characters>_<256 random bits>``."""
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
    prefix = TOKEN_MARK + "".join(secrets.choice(alphabet) for _ in range(8))
    secret = f"{prefix}_{secrets.token_urlsafe(32)}"
    return NewSecret(secret=secret, prefix=prefix, sha256=sha256_hex(secret))


def token_prefix(secret: str) -> str:
    """The prefix that finds the token's row; "" when ``secret`` has not the shape of a token."""
    return secret[:_PREFIX_LENGTH] if _TOKEN.fullmatch(secret) else ""


def sha256_hex(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def same_secret(secret: str, stored_sha256: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(sha256_hex(secret), stored_sha256)
