"""New revisions of a standing deployment: each an immutable combination of image, artifact, configuration and profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F, Max

from models_app.domain.payload import parsed_ask
from models_app.engines.registry import engine_of
from models_app.models import Deployment, Revision
from models_app.selectors.deployments import deployment_get
from models_app.selectors.specs import CONSUMER_KIND, spec_of_ask
from models_app.services.parts.deployments import deployment_locked, record, revision_snapshot
from portal.audit.domain.actors import Actor
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import require
from portal.work import hints
from portal.work.services.parts.generations import generation_raise

CHANGEABLE = ("image", "source", "source_revision", "source_file", "cpu", "memory", "vram", "context_length", "arguments")


def revision_create(*, actor: Actor, public_id: str, changes: Mapping[str, Any], version: int | None = None) -> Revision:
    """The next revision: the newest one with ``changes`` (keys of ``CHANGEABLE``, shapes as in a deployment request).

    It takes over at once, without surge: the old pods leave first (C22, D8), so that no quota grows. InvalidInput names
    each wrong field; Stale and Conflict as for scaling. Changes that change nothing: the newest revision.
    """
    unknown = [name for name in changes if name not in CHANGEABLE]
    if unknown:
        raise InvalidInput(
            "This cannot be changed by a revision.",
            fields={name: [f"Not changeable; these are: {', '.join(CHANGEABLE)}."] for name in unknown},
        )
    deployment = deployment_get(actor=actor, public_id=public_id)
    require(actor=actor, permission=Permission.DEPLOYMENT_CHANGE, project=deployment.project)
    if actor.user_pk is None:
        raise InvalidInput("A revision has an author: only a person makes one.")
    with transaction.atomic(durable=True):
        row = deployment_locked(deployment=deployment, version=version)
        rows = Revision.objects.for_project(row.project).filter(deployment=row).select_related("profile")
        current: Revision = rows.get(number=row.revision)
        values = _values(row, current, changes)
        if all(getattr(current, name) == value for name, value in values.items()):
            return current
        number = (rows.aggregate(newest=Max("number"))["newest"] or 0) + 1
        revision: Revision = Revision.objects.create(
            deployment=row,
            project=row.project,
            number=number,
            backend=current.backend,
            model_format=current.model_format,
            profile=current.profile,
            profile_version=current.profile_version,
            profile_snapshot=current.profile_snapshot,
            created_by_id=actor.user_pk,
            **values,
        )
        generation_raise(row, revision=number, version=F("version") + 1, request_id=actor.request_id)
        record(actor, "deployment.revise", row, revision_snapshot(current), revision_snapshot(revision))
        hints.nudge(CONSUMER_KIND, public_id)
        return revision


def _values(row: Deployment, current: Revision, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the next revision, by the same rules as a first one."""
    configuration = current.configuration
    payload = {
        "name": row.name,
        "profile": row.profile.name,
        "engine": row.engine,
        "backend": current.backend,
        "model_format": current.model_format,
        "devices_per_replica": row.devices_per_replica,
        "replicas_min": row.replicas_min,
        "replicas_max": row.replicas_max,
        "image": current.image,
        "source": current.artifact_source,
        "source_revision": current.artifact_revision,
        **{key: configuration[key] for key in _CONFIGURED if key in configuration},
        **changes,
    }
    ask, problems = parsed_ask(payload)
    if ask is not None:
        spec = spec_of_ask(ask, project=row.project, profile=current.profile, cell=None)
        for problem in engine_of(row.engine).spec_problems(spec):
            problems.setdefault(problem.field, []).append(problem.text)
    if ask is None or problems:
        raise InvalidInput("The revision is not possible as it stands.", fields=problems)
    return {
        "image": ask.image or current.image,
        "artifact_source": ask.source,
        "artifact_revision": ask.source_revision,
        "configuration": {
            **configuration,
            "source_file": ask.source_file,
            "cpu": ask.cpu,
            "memory": ask.memory,
            "vram": ask.vram,
            "context_length": ask.context_length,
            "arguments": list(ask.arguments),
        },
    }


_CONFIGURED = ("source_file", "cpu", "memory", "vram", "context_length", "arguments")
