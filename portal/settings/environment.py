"""The only reader of the process environment: typed, ``*_FILE`` for secrets, and one list of all that is missing."""

from __future__ import annotations

import os
from pathlib import Path


class Misconfigured(SystemExit):
    """A half-configured process does not start; it says all that is missing at once."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("Slipway cannot start:\n" + "\n".join(f"  - {problem}" for problem in problems))


class Environment:
    """Reads variables and remembers what was wrong, until ``check`` raises it all."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    def text(self, name: str, *, default: str | None = None, what: str = "") -> str:
        value = os.environ.get(name, "").strip()
        if value:
            return value
        if default is None:
            self._problems.append(f"{name} is not set" + (f" ({what})" if what else ""))
            return ""
        return default

    def secret(self, name: str, *, what: str = "") -> str:
        """The value of ``name``, or the content of the file that ``<name>_FILE`` names."""
        path = os.environ.get(f"{name}_FILE", "").strip()
        if path:
            try:
                return Path(path).read_text().strip()
            except OSError as error:
                self._problems.append(f"{name}_FILE: cannot read {path}: {error.strerror}")
                return ""
        return self.text(name, what=what or f"or {name}_FILE, a file that holds it")

    def number(self, name: str, *, default: int) -> int:
        raw = self.text(name, default=str(default))
        try:
            return int(raw)
        except ValueError:
            self._problems.append(f"{name} must be a whole number, not {raw!r}")
            return default

    def flag(self, name: str, *, default: bool) -> bool:
        raw = self.text(name, default="true" if default else "false").lower()
        if raw in {"1", "true", "yes", "on"}:
            return True
        if raw in {"0", "false", "no", "off"}:
            return False
        self._problems.append(f"{name} must be true or false, not {raw!r}")
        return default

    def items(self, name: str, *, default: str = "") -> list[str]:
        return [item.strip() for item in self.text(name, default=default).split(",") if item.strip()]

    def check(self) -> None:
        if self._problems:
            raise Misconfigured(self._problems)


def use_settings(module: str) -> None:
    """Choose the settings of this kind of process, unless the environment already names some."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)
