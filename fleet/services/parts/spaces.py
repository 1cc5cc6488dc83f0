"""Project spaces as other floors ask for them: parts of their transactions."""

from __future__ import annotations

from django.db import connection

from fleet.domain.spaces import SPACE_KIND
from fleet.models import Cluster, ProjectSpace
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.tenancy.models import Project
from portal.work import hints
from portal.work.models import Desired
from portal.work.services.parts.generations import generation_raise


def space_ensure(*, actor: Actor, project: Project, cluster: Cluster) -> ProjectSpace:
    """The project's space on ``cluster``, made when it has none; its namespace appears soon after the commit.

    A space that was given up is wanted again with the same namespace, which its loop adopts only while it is its own (D1).
    """
    _require_transaction()
    space: ProjectSpace
    space, made = ProjectSpace.objects.for_project(project).get_or_create(
        cluster=cluster,
        project=project,
        defaults={"namespace": project.namespace, "request_id": actor.request_id},
    )
    if made:
        _record(actor, "space.create", space, None)
    elif space.desired != Desired.PRESENT:
        generation_raise(space, desired=Desired.PRESENT.value, archived_at=None, request_id=actor.request_id)
        _record(actor, "space.restore", space, Desired.ABSENT)
    else:
        return space
    hints.nudge(SPACE_KIND, space.public_id)
    return space


def space_touch(*, project: Project) -> None:
    """Have the loop write the project's quota fence on each of its clusters anew: its grants or holds changed."""
    _require_transaction()
    spaces = ProjectSpace.objects.for_project(project).filter(archived_at=None)
    for space in spaces.select_for_update(of=("self",)).order_by("pk"):
        generation_raise(space)
        hints.nudge(SPACE_KIND, space.public_id)


def spaces_end_with_project(*, actor: Actor, project: Project) -> None:
    """Give up the spaces of a project that closes; each loop waits until nothing of others is in the namespace (D6)."""
    _require_transaction()
    spaces = ProjectSpace.objects.for_project(project).filter(archived_at=None, desired=Desired.PRESENT.value)
    for space in spaces.select_for_update(of=("self",)).order_by("pk"):
        generation_raise(space, desired=Desired.ABSENT.value, request_id=actor.request_id)
        _record(actor, "space.end", space, Desired.PRESENT)
        hints.nudge(SPACE_KIND, space.public_id)


def _record(actor: Actor, action: str, space: ProjectSpace, before: Desired | None) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind=SPACE_KIND,
        object_id=space.public_id,
        project_id=space.project.public_id,
        organization_id=space.project.organization.public_id,
        before=None if before is None else {"desired": before.value},
        after={"desired": str(space.desired), "cluster": space.cluster.name, "namespace": space.namespace},
    )


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise AssertionError("spaces change inside the transaction of the act they follow")
