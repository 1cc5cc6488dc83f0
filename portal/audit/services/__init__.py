"""The one way to write an audit row: a part, called inside the transaction of the change it records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection

from portal.audit.domain.actors import Actor
from portal.audit.models import AuditEvent


def event_record(
    *,
    actor: Actor,
    action: str,
    object_kind: str,
    object_id: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    project_id: str = "",
    organization_id: str = "",
    reason: str = "",
) -> AuditEvent:
    """Record that ``actor`` did ``action`` (``<noun>.<verb>``) to one object; ``before``/``after`` are JSON values.

    Must run inside the transaction of the change. Callers pass no secret: a key or token is named by its public id.
    """
    if not connection.in_atomic_block:
        raise AssertionError("audit rows are written inside the transaction of the change they record")
    return AuditEvent.objects.create(
        actor_kind=actor.kind.value,
        actor_id=actor.id,
        channel=actor.channel.value,
        token_id=actor.token_id,
        request_id=actor.request_id,
        action=action,
        object_kind=object_kind,
        object_id=object_id,
        project_id=project_id,
        organization_id=organization_id,
        before=dict(before) if before is not None else None,
        after=dict(after) if after is not None else None,
        reason=reason,
    )
