"""What `make test` needs and a fresh machine lacks: the control plane's binaries (built once) and a browser."""

from __future__ import annotations

import sys
import time

from deploy.local.binaries import build_all
from deploy.local.chromium import NoBrowser, chromium


def main() -> None:
    """Build and install what is missing, one line a step."""
    began = time.monotonic()
    last = ""

    def progress(step: str, fraction: float | None) -> None:
        nonlocal last
        if step != last:
            share = f" ({fraction:.0%})" if fraction is not None else ""
            print(f"slipway: {step}{share}, {time.monotonic() - began:.0f} s", flush=True)
            last = step

    try:
        chromium()
    except NoBrowser as missing:
        sys.exit(f"slipway: {missing}")
    build_all(progress)


if __name__ == "__main__":
    main()
