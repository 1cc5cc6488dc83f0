"""Where a checkout keeps everything it makes at run time: one folder per checkout and user, outside it and outside home."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def state_dir() -> Path:
    """``SLIPWAY_STATE_DIR``, else a folder under /var/tmp named after this checkout; made when absent.

    Not under home: PostgreSQL run by root switches to a system user, which must be able to reach its data.
    """
    chosen = os.environ.get("SLIPWAY_STATE_DIR", "").strip()
    mark = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
    path = Path(chosen) if chosen else Path("/var/tmp") / f"slipway-{os.getuid()}-{mark}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def cache_dir() -> Path:
    """Built binaries, shared by every checkout of this user: ``SLIPWAY_CACHE_DIR`` or ~/.cache/slipway."""
    chosen = os.environ.get("SLIPWAY_CACHE_DIR", "").strip()
    path = Path(chosen) if chosen else Path.home() / ".cache" / "slipway"
    path.mkdir(parents=True, exist_ok=True)
    return path
