"""Projects as other floors need them inside their own transactions."""

from __future__ import annotations

from django.db import connection

from portal.kernel.errors import Conflict
from portal.tenancy.models import Project, ProjectState


def project_keep_open(*, project: Project) -> None:
    """Keep ``project`` from closing until the transaction ends; Conflict when it is closed already.

    For what closing ends and would miss while it is not committed. It comes before every other lock.
    """
    if not connection.in_atomic_block:
        raise AssertionError("project_keep_open holds until the caller's transaction ends")
    row = Project.objects.select_for_update(of=("self",), no_key=True).only("state", "name").get(pk=project.pk)
    if row.state == ProjectState.CLOSED:
        raise Conflict(f"Project {row.name} is closed: nothing new happens in it.", code="project_closed")
