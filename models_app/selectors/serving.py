"""Which pods serve which model now: what routing pulls (design §3: models_app pushes nothing up)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.models import ObservedPod
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
    """Every wanted deployment of every open project, by (project, model name), in two queries of the columns needed.

    Of the observer and the deployment's own loop, the later word on each pod counts, so either alone is enough. A pod
    counts only in the namespace of the deployment's own project: labels elsewhere can be forged.
    """
    with unscoped("the gateway's route table spans every project; each key reaches its own project's part only"):
        rows = list(
            Deployment.objects.filter(
                archived_at=None, desired=Desired.PRESENT.value, project__state=ProjectState.ACTIVE.value
            )
            .order_by("project__public_id", "name", "pk")
            .values(
                "public_id",
                "name",
                "created_at",
                "cluster_id",
                "observed_at",
                "observed__pods",
                "observed__complete",
                "project__public_id",
                "project__namespace",
            )
        )
    words = _observer_words()
    return [
        ServingTarget(
            project_id=row["project__public_id"],
            model_name=row["name"],
            deployment_id=row["public_id"],
            created_at=row["created_at"],
            addresses=_addresses(
                words.get((row["public_id"], row["cluster_id"], row["project__namespace"]), {}),
                (row["observed__pods"] or []) if row["observed__complete"] else None,
                row["observed_at"],
            ),
        )
        for row in rows
    ]


def _observer_words() -> dict[tuple[str, int, str], dict[str, _Word]]:
    """(deployment's public id, cluster, namespace) -> pod uid -> the observer's word."""
    words: dict[tuple[str, int, str], dict[str, _Word]] = defaultdict(dict)
    pods = ObservedPod.objects.filter(owner_kind=CONSUMER_KIND, gone_at=None).values_list(
        "owner_id",
        "cluster_id",
        "namespace",
        "uid",
        "observed_at",
        "pod_ip",
        "port",
        "phase",
        "ready",
        "deletion_at",
    )
    for owner, cluster, namespace, uid, at, ip, port, phase, ready, deletion_at in pods:
        word = _Word(at, ip if phase == "Running" else "", port or 0, ready, deletion_at is not None)
        words[owner, cluster, namespace][uid] = word
    return words


def _addresses(
    observer: Mapping[str, _Word], in_loop: Sequence[Mapping[str, Any]] | None, at: datetime | None
) -> tuple[ServingAddress, ...]:
    """``in_loop`` are the pods of the loop's last whole look at ``at``, as ``domain.sightings`` keeps them."""
    words = dict(observer)
    if in_loop is not None and at is not None:
        looked = {pod["uid"]: pod for pod in in_loop}
        words = {uid: word for uid, word in words.items() if word.at >= at or uid in looked}
        for uid, pod in looked.items():
            if uid not in words or words[uid].at < at:
                ip = pod["ip"] if not pod["ended"] else ""
                words[uid] = _Word(at, ip, pod["port"] or 0, pod["ready"], pod["deleting"])
    return tuple(
        ServingAddress(ip=word.ip, port=word.port, draining=word.ending)
        for _, word in sorted(words.items())
        if word.ip and word.port and (word.ready or word.ending)
    )
