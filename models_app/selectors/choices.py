"""What the form of a deployment request offers."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.models import Cluster
from fleet.selectors.grants import GrantUse, grants_with_use
from fleet.selectors.profiles import cluster_list
from models_app.domain.payload import FORMAT_OF_BACKEND
from models_app.engines.registry import ENGINES
from portal.audit.domain.actors import Actor
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import require


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """``note`` says what its author must know, "" when nothing."""

    name: str
    label: str
    note: str


@dataclass(frozen=True, slots=True)
class DeploymentChoices:
    """``grants`` are the project's live ones, each with its profile and what is free; (name, label) pairs elsewhere."""

    grants: tuple[GrantUse, ...]
    clusters: tuple[Cluster, ...]
    engines: tuple[EngineChoice, ...]
    backends: tuple[tuple[str, str], ...]
    model_formats: tuple[tuple[str, str], ...]


def deployment_form_choices(*, actor: Actor, project: Project) -> DeploymentChoices:
    """The choices for ``project``; NotFound or Forbidden when ``actor`` may not ask there."""
    require(actor=actor, permission=Permission.REQUEST_CREATE, project=project)
    clusters = tuple(cluster_list(enabled_only=True))
    engines = []
    for engine in ENGINES.values():
        installed = not engine.operator or any(_has(cluster, engine.main) for cluster in clusters)
        engines.append(EngineChoice(engine.name, engine.label, "" if installed else "operator not installed"))
    return DeploymentChoices(
        grants=tuple(grants_with_use(project=project)),
        clusters=clusters,
        engines=tuple(engines),
        backends=(("llamacpp", "llama.cpp"), ("vllm", "vLLM")),
        model_formats=tuple((name, name) for name in dict.fromkeys(FORMAT_OF_BACKEND.values())),
    )


def _has(cluster: Cluster, main: tuple[str, str]) -> bool:
    return f"{main[0]}/{main[1]}" in cluster.installed_kinds
