"""Deployments as an approval makes them, and as whatever ends them stops them: parts of somebody's transaction."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection
from django.db.models import F

from fleet.models import Cluster, CompatibilityCell, GpuProfile
from fleet.selectors.grants import grant_for
from fleet.services.parts.holds import hold_raise
from fleet.services.parts.spaces import space_ensure
from models_app.domain.names import derived_object_name
from models_app.domain.payload import DeploymentAsk
from models_app.engines.registry import engine_of
from models_app.models import Deployment, Revision, StateChange
from models_app.models.deployments import deployment_id
from models_app.selectors.deployments import name_taken
from models_app.selectors.specs import CONSUMER_KIND
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict, QuotaExceeded, Stale
from portal.tenancy.models import Project, User, unscoped
from portal.work import hints
from portal.work.models import Desired
from portal.work.services.parts.generations import generation_raise


def deployment_create(
    *,
    actor: Actor,
    project: Project,
    ask: DeploymentAsk,
    profile: GpuProfile,
    cluster: Cluster,
    cell: CompatibilityCell,
    author: User,
    approval_id: str,
) -> Deployment:
    """The declared row with its first revision, its quota held at the replica ceiling (Q1), its loop nudged.

    QuotaExceeded when the project's grant of ``profile`` does not leave that many devices; Conflict when the name is taken.
    Locks the grant; the caller holds the request's row.
    """
    _require_transaction()
    name_check(project=project, name=ask.name)
    grant = grant_for(project, profile)
    if grant is None:
        raise QuotaExceeded(
            f"{project.name} has no grant of {profile.title} that runs now: ask for one first.", code="no_grant"
        )
    public_id = deployment_id()
    hold_raise(actor=actor, grant_id=grant.pk, consumer_kind=CONSUMER_KIND, consumer_id=public_id, devices=ask.devices)
    engine = engine_of(ask.engine)
    try:
        deployment: Deployment = Deployment.objects.create(
            public_id=public_id,
            project=project,
            cluster=cluster,
            grant=grant,
            profile=profile,
            name=ask.name,
            object_name=derived_object_name(ask.name, public_id, limit=engine.name_limit(project.namespace)),
            engine=ask.engine,
            replicas_min=ask.replicas_min,
            replicas_max=ask.replicas_max,
            devices_per_replica=ask.devices_per_replica,
            approval_id=approval_id,
            request_id=actor.request_id,
        )
    except IntegrityError as error:
        raise Conflict(
            f"The name “{ask.name}” was taken in this project just now: choose another.", code="name_taken"
        ) from error
    revision = Revision.objects.create(
        deployment=deployment,
        project=project,
        number=1,
        image=ask.image or cell.image,
        backend=ask.backend,
        artifact_source=ask.source,
        artifact_revision=ask.source_revision,
        model_format=ask.model_format,
        configuration={
            "source_file": ask.source_file,
            "cpu": ask.cpu,
            "memory": ask.memory,
            "vram": ask.vram,
            "context_length": ask.context_length,
            "arguments": list(ask.arguments),
        },
        profile=profile,
        profile_version=profile.version,
        profile_snapshot=profile_snapshot(profile, cell),
        created_by=author,
    )
    StateChange.objects.create(
        deployment=deployment, project=project, phase=deployment.phase, message="Approved and declared."
    )
    record(actor, "deployment.create", deployment, None, {**snapshot(deployment), "revision": revision_snapshot(revision)})
    space_ensure(actor=actor, project=project, cluster=cluster)
    hints.nudge(CONSUMER_KIND, deployment.public_id)
    return deployment


def deployment_stop(*, actor: Actor, public_id: str, reason: str) -> Deployment | None:
    """Stop wanting it: the loop removes its objects, and its quota is held until the last pod is proven gone (Q1).

    Safe to repeat; None when there is no such deployment. Locks the row, so grants and requests come before.
    """
    _require_transaction()
    with unscoped("whoever stops it was allowed to before; found by its own id"):
        deployment: Deployment | None = (
            Deployment.objects.select_related("project__organization")
            .select_for_update(of=("self",))
            .filter(public_id=public_id)
            .first()
        )
    if deployment is None or deployment.desired == Desired.ABSENT or deployment.archived_at is not None:
        return deployment
    before = snapshot(deployment)
    generation_raise(deployment, desired=Desired.ABSENT.value, version=F("version") + 1)
    record(actor, "deployment.delete", deployment, before, snapshot(deployment), reason)
    hints.nudge(CONSUMER_KIND, deployment.public_id)
    return deployment


def deployment_locked(*, deployment: Deployment, version: int | None) -> Deployment:
    """The row, locked, with what services read of it. Conflict when it is being deleted, Stale when it has moved on."""
    _require_transaction()
    row: Deployment = (
        Deployment.objects.for_project(deployment.project)
        .select_related("project__organization", "profile", "cluster", "grant")
        .select_for_update(of=("self",))
        .get(pk=deployment.pk)
    )
    if row.archived_at is not None or row.desired == Desired.ABSENT:
        raise Conflict("This deployment is being deleted: nothing of it can be changed.", code="deleting")
    if version is not None and version != row.version:
        raise Stale(f"You saw version {version}; it is at {row.version} now. Load it again and decide anew.")
    return row


def deployments_end_with_project(*, actor: Actor, project: Project) -> None:
    """Stop every deployment of a project that closes."""
    _require_transaction()
    standing = Deployment.objects.for_project(project).filter(archived_at=None, desired=Desired.PRESENT.value)
    for public_id in standing.order_by("pk").values_list("public_id", flat=True):
        deployment_stop(actor=actor, public_id=public_id, reason="The project was closed.")


def name_check(*, project: Project, name: str) -> None:
    """Conflict when a deployment of the project has the name, saying what it waits for when it is being deleted (C21)."""
    taken = name_taken(project=project, name=name)
    if taken is not None:
        raise Conflict(taken.text, code="name_taken", fields={"name": [taken.text]})


def profile_snapshot(profile: GpuProfile, cell: CompatibilityCell) -> dict[str, Any]:
    """What rendering reads of the profile, kept on the revision: later edits of the profile change nothing that runs."""
    return {
        "name": profile.name,
        "vendor": profile.vendor,
        "architecture": profile.architecture,
        "resource_name": profile.resource_name,
        "vram_bytes": profile.vram_bytes,
        "node_selector": profile.node_selector,
        "tolerations": profile.tolerations,
        "environment": cell.environment,
    }


def snapshot(deployment: Deployment) -> dict[str, Any]:
    """What audit rows keep of a deployment."""
    return {
        "name": deployment.name,
        "desired": deployment.desired,
        "revision": deployment.revision,
        "replicas_min": deployment.replicas_min,
        "replicas_max": deployment.replicas_max,
        "devices_per_replica": deployment.devices_per_replica,
        "generation": deployment.generation,
    }


def revision_snapshot(revision: Revision) -> dict[str, Any]:
    """What audit rows keep of a revision."""
    return {
        "number": revision.number,
        "image": revision.image,
        "artifact_source": revision.artifact_source,
        "artifact_revision": revision.artifact_revision,
        "profile": f"{revision.profile.name} v{revision.profile_version}",
        "configuration": revision.configuration,
    }


def record(
    actor: Actor,
    action: str,
    deployment: Deployment,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    reason: str = "",
) -> None:
    """The audit row of a change of ``deployment``."""
    event_record(
        actor=actor,
        action=action,
        object_kind="deployment",
        object_id=deployment.public_id,
        project_id=deployment.project.public_id,
        organization_id=deployment.project.organization.public_id,
        before=before,
        after=after,
        reason=reason,
    )


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise AssertionError("deployments change inside the transaction of the decision they follow")
