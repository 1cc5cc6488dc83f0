"""What one pass over a deployment works on: the row and its rules' inputs, read once; and what the pass did, noted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fleet.cluster import ObjectRef
from fleet.selectors.pods import pods_of
from models_app.domain.convergence import Key
from models_app.domain.sightings import Sighting, sighting_of
from models_app.models import AppliedObject, Deployment, Revision
from models_app.selectors.specs import CONSUMER_KIND
from portal.tenancy.models import unscoped
from portal.work.models import Desired


@dataclass(frozen=True, slots=True)
class AppliedNow:
    """An object of ours as it stands after the pass; ``fresh``: this pass created or changed it."""

    ref: ObjectRef
    fresh: bool
    uid: str
    resource_version: str
    spec_hash: str
    manifest: dict[str, Any]


@dataclass(slots=True)
class Notes:
    """What the pass did, for the recording transaction; ``seen`` None: the cluster was not read to the end.

    ``standing``: keys (kind, name) that exist after the pass, None when not read. ``deleted``: what it ordered to go.
    ``makers_left``: something there could still start a pod. ``failed``: why it can never become true, "" otherwise.
    """

    applied: dict[Key, AppliedNow] = field(default_factory=dict)
    standing: frozenset[Key] | None = None
    deleted: list[ObjectRef] = field(default_factory=list)
    seen: Sighting | None = None
    makers_left: bool = True
    ready_once: bool = False
    failed: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentPass:
    """``applied`` are the objects that stand, as recorded; ``known_pods`` are (uid, name) of pods not proven gone."""

    deployment: Deployment
    revision: Revision
    applied: tuple[AppliedObject, ...]
    known_pods: tuple[tuple[str, str], ...]
    notes: Notes

    @property
    def wanted(self) -> bool:
        return self.deployment.desired == Desired.PRESENT

    @property
    def namespace(self) -> str:
        return self.deployment.project.namespace


def load_pass(pk: int) -> DeploymentPass:
    """Everything a pass reads from the database, in a fixed number of queries."""
    with unscoped("the deployment loop serves every project"):
        deployment = Deployment.objects.select_related("project__organization", "cluster", "profile").get(pk=pk)
        revision = Revision.objects.select_related("profile").get(deployment=deployment, number=deployment.revision)
        applied = tuple(AppliedObject.objects.filter(deployment=deployment, gone_at=None).order_by("pk"))
    pods = pods_of(kind=CONSUMER_KIND, id=deployment.public_id).filter(cluster=deployment.cluster)
    known = {pod.uid: pod.name for pod in pods if pod.namespace == deployment.project.namespace}
    seen = sighting_of(deployment.observed)
    known |= {pod.uid: pod.name for pod in seen.pods} if seen else {}
    return DeploymentPass(
        deployment=deployment,
        revision=revision,
        applied=applied,
        known_pods=tuple(sorted(known.items())),
        notes=Notes(),
    )
