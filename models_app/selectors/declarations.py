"""A deployment's row and its last observation as the plain values that ``domain.phases`` decides on."""

from __future__ import annotations

from models_app.domain.facts import facts_of
from models_app.domain.phases import Declaration, Fact, Phase, PhaseReport, phase_of
from models_app.domain.sightings import sighting_of
from models_app.models import Deployment
from portal.work.models import Desired


def declaration_of(deployment: Deployment) -> Declaration:
    """What the row says; ``deployment.cluster`` is read, so select it with the row."""
    observed = deployment.observed
    attention = deployment.set_aside_reason
    lost = deployment.phase == Phase.UNKNOWN
    return Declaration(
        wanted=deployment.desired == Desired.PRESENT,
        replicas_min=deployment.replicas_min,
        replicas_max=deployment.replicas_max,
        applied=observed.get("applied_generation") == deployment.generation,
        cluster_reachable=False if lost else deployment.cluster.reachable,
        cluster_error=deployment.phase_message if lost else deployment.cluster.last_error,
        problem_reason="NeedsAttention" if attention else observed.get("problem_reason", ""),
        problem=attention or observed.get("problem", ""),
        operator_missing=observed.get("operator_missing", ""),
    )


def report_of(deployment: Deployment) -> PhaseReport:
    """The phase as of now: the last observation, and whether its cluster still answers."""
    return phase_of(declaration_of(deployment), sighting_of(deployment.observed))


def deployment_facts(deployment: Deployment, *, held_devices: int) -> tuple[Fact, ...]:
    """The states of contract §2 apart. ``held_devices`` is the open quota hold, 0 without one."""
    declared, seen = declaration_of(deployment), sighting_of(deployment.observed)
    return facts_of(
        declared,
        phase_of(declared, seen),
        seen,
        declared_at=deployment.created_at,
        admitted=held_devices > 0,
        admitted_text=f"{held_devices} devices held" if held_devices else "no quota held",
        observed_at=deployment.observed_at,
    )


def ready_of(deployment: Deployment) -> tuple[int | None, int]:
    """(ready, wanted) replicas as last seen; ready is None before the first pass."""
    seen = sighting_of(deployment.observed)
    if seen is None:
        return None, deployment.replicas_min
    wanted = seen.workload.replicas_wanted
    return sum(pod.ready for pod in seen.pods), deployment.replicas_min if wanted is None else wanted
