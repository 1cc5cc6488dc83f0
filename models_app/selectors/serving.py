"""Which pods serve which model now: what routing pulls (design §3: models_app pushes nothing up)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from fleet.models import ObservedPod
from models_app.domain.sightings import sighting_of
from models_app.models import Deployment
from models_app.selectors.specs import CONSUMER_KIND
from portal.tenancy.models import ProjectState, unscoped
from portal.work.models import Desired


@dataclass(frozen=True, slots=True)
class ServingAddress:
    """Where a pod's engine listens. ``draining``: it takes no new traffic and ends what it has accepted."""

    ip: str
    port: int
    draining: bool


@dataclass(frozen=True, slots=True)
class ServingTarget:
    """A model of an open project. ``project_id`` and ``deployment_id`` are public ids; ``model_name`` is what callers send.

    ``addresses`` may be empty: the model exists and is not ready (loading, idle).
    """

    project_id: str
    model_name: str
    deployment_id: str
    created_at: datetime
    addresses: tuple[ServingAddress, ...]


@dataclass(frozen=True, slots=True)
class _Word:
    """What one source says of a pod, and when it looked."""

    at: datetime
    ip: str
    port: int
    ready: bool
    ending: bool


def serving_targets() -> list[ServingTarget]:
    """Every wanted deployment of every open project, by (project, model name), in two queries.

    Of the observer and the deployment's own loop, the later word on each pod counts, so either alone is enough. A pod
    counts only in the namespace of the deployment's own project: labels elsewhere can be forged.
    """
    with unscoped("the gateway's route table spans every project; each key reaches its own project's part only"):
        rows = list(
            Deployment.objects.filter(
                archived_at=None, desired=Desired.PRESENT.value, project__state=ProjectState.ACTIVE.value
            )
            .select_related("project")
            .order_by("project__public_id", "name", "pk")
        )
    pods: dict[str, list[ObservedPod]] = defaultdict(list)
    columns = (
        "uid",
        "cluster_id",
        "namespace",
        "owner_id",
        "ready",
        "pod_ip",
        "port",
        "phase",
        "deletion_at",
        "observed_at",
    )
    for pod in ObservedPod.objects.filter(owner_kind=CONSUMER_KIND, gone_at=None).only(*columns):
        pods[pod.owner_id].append(pod)
    return [
        ServingTarget(
            project_id=row.project.public_id,
            model_name=row.name,
            deployment_id=row.public_id,
            created_at=row.created_at,
            addresses=_addresses(row, pods.get(row.public_id, [])),
        )
        for row in rows
    ]


def _addresses(deployment: Deployment, pods: list[ObservedPod]) -> tuple[ServingAddress, ...]:
    words: dict[str, _Word] = {}
    for pod in pods:
        if pod.cluster_id == deployment.cluster_id and pod.namespace == deployment.project.namespace:
            ip = pod.pod_ip if pod.phase == "Running" else ""
            words[pod.uid] = _Word(pod.observed_at, ip, pod.port or 0, pod.ready, pod.deletion_at is not None)
    seen, at = sighting_of(deployment.observed), deployment.observed_at
    if seen is not None and seen.complete and at is not None:
        in_loop = {pod.uid for pod in seen.pods}
        words = {uid: word for uid, word in words.items() if word.at >= at or uid in in_loop}
        for item in seen.pods:
            if item.uid not in words or words[item.uid].at < at:
                ip = item.ip if not item.ended else ""
                words[item.uid] = _Word(at, ip, item.port or 0, item.ready, item.deleting)
    return tuple(
        ServingAddress(ip=word.ip, port=word.port, draining=word.ending)
        for _, word in sorted(words.items())
        if word.ip and word.port and (word.ready or word.ending)
    )
