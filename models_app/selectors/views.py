"""What a deployment's page and its REST answer show, put together once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models_app.domain.phases import Fact, PhaseReport
from models_app.domain.sightings import EventSighting, PodSighting
from models_app.models import Deployment, Revision, StateChange


@dataclass(frozen=True, slots=True)
class ManifestView:
    """An object as applied last; ``yaml`` is the manifest with its stamps. ``gone_at`` once it is proven gone."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    applied_at: datetime
    gone_at: datetime | None
    manifest: dict[str, Any]
    yaml: str


@dataclass(frozen=True, slots=True)
class DeploymentView:
    """Everything of one deployment. ``facts`` are the states of contract §2 in order; ``conditions`` are JSON as stored
    (type, status, reason, message, since); ``observed_at`` dates ``pods`` and ``events``, None before the first pass.

    ``report`` is the phase as of now: a lost cluster or a row that was set aside shows before its loop has said so.
    ``held_devices`` is the quota hold, 0 without one. ``may_change``/``may_delete`` are what the actor may do now.
    """

    deployment: Deployment
    revision: Revision
    facts: tuple[Fact, ...]
    conditions: tuple[dict[str, Any], ...]
    pods: tuple[PodSighting, ...]
    events: tuple[EventSighting, ...]
    manifests: tuple[ManifestView, ...]
    timeline: tuple[StateChange, ...]
    revisions: tuple[Revision, ...]
    held_devices: int
    observed_at: datetime | None
    may_change: bool
    may_delete: bool
    report: PhaseReport


@dataclass(frozen=True, slots=True)
class DeploymentCard:
    """One row of a list: ready of wanted as last seen (None: not seen yet)."""

    deployment: Deployment
    ready: int | None
    wanted: int
