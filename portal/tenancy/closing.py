"""What closing a project ends on the floors above; each registers its part in its ``AppConfig.ready``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from portal.audit.domain.actors import Actor
from portal.tenancy.models import Project


class EndsWithProject(Protocol):
    def __call__(self, *, actor: Actor, project: Project) -> None:
        """End what the floor has in the closed ``project``: a part, in the closing transaction, with its audit rows."""


_endings: dict[str, EndsWithProject] = {}


def register(name: str, ending: EndsWithProject) -> None:
    """Run ``ending`` when a project closes. Endings run by name in the order of registration, lower floors first."""
    _endings[name] = ending


def endings() -> Iterator[EndsWithProject]:
    return iter(tuple(_endings.values()))
