"""The gateway's picture of keys and served models, read whole (design §5: authz follows a snapshot)."""

from __future__ import annotations

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from models_app.selectors.serving import serving_targets
from portal.tenancy.models import ProjectState, unscoped
from routing.domain.table import Endpoint, Key, Route, RouteTable
from routing.models import ApiKey


def route_table_read() -> RouteTable:
    """Keys in force of open projects, and the models of every project with their pods' addresses.

    The clock is read before the rows: what commits later is in the next table, and is never claimed by this one.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (read_at,) = cursor.fetchone()
    with unscoped("gateway route table"):
        rows = list(
            ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)
            .filter(project__state=ProjectState.ACTIVE)
            .order_by()
            .values_list("secret_sha256", "public_id", "project__public_id", "expires_at")
        )
    keys = {sha256: Key(key_id=key, project_id=project, expires_at=expires) for sha256, key, project, expires in rows}
    routes = (
        Route(
            deployment_id=target.deployment_id,
            project_id=target.project_id,
            model=target.model_name,
            created=int(target.created_at.timestamp()),
            endpoints=tuple(sorted(Endpoint(one.ip, one.port, one.draining) for one in target.addresses)),
        )
        for target in serving_targets()
    )
    return RouteTable(read_at=read_at, routes=tuple(sorted(routes, key=lambda one: one.deployment_id)), keys=keys)
