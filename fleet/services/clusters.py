"""Clusters that Slipway uses: registered by fleet operators; what is in them is observed, never typed."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction

from fleet.models import Cluster
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.errors import Conflict, InvalidInput, NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import require_platform

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_CREDENTIAL = re.compile(r"[a-z0-9]([a-z0-9._-]{0,118}[a-z0-9])?")


def cluster_create(*, actor: Actor, name: str, credential: str = "") -> Cluster:
    """Register a cluster. ``credential`` names a file ``<credential>.kubeconfig`` in the credentials folder (default: the
    name); no secret is given here. The file may come later: until then the cluster is unreachable, and nothing is lost."""
    require_platform(actor=actor, permission=Permission.FLEET_MANAGE)
    credential = credential or name
    problems: dict[str, list[str]] = {}
    if not _NAME.fullmatch(name):
        problems["name"] = ["1 to 40 lower-case letters, digits and dashes, starting with a letter."]
    if not _CREDENTIAL.fullmatch(credential) or ".." in credential:
        problems["credential"] = ["A file name without folder and ending."]
    if problems:
        raise InvalidInput("The cluster is not valid.", fields=problems)
    with transaction.atomic(durable=True):
        try:
            with transaction.atomic():
                cluster = Cluster.objects.create(name=name, credential=credential)
        except IntegrityError as error:
            raise Conflict(f"There is a cluster {name!r} already.", fields={"name": ["Taken."]}) from error
        _record(actor, "cluster.create", cluster, None)
    return cluster


def cluster_enable(*, actor: Actor, public_id: str, enabled: bool, reason: str = "") -> Cluster:
    """Offer the cluster for new work, or stop offering it; what runs on it goes on being observed and metered."""
    require_platform(actor=actor, permission=Permission.FLEET_MANAGE)
    with transaction.atomic(durable=True):
        cluster = Cluster.objects.select_for_update(of=("self",), no_key=True).filter(public_id=public_id).first()
        if cluster is None:
            raise NotFound
        if cluster.enabled == enabled:
            return cluster
        before = _snapshot(cluster)
        cluster.enabled = enabled
        cluster.save(update_fields=["enabled"])
        _record(actor, "cluster.enable" if enabled else "cluster.disable", cluster, before, reason)
    return cluster


def _snapshot(cluster: Cluster) -> dict[str, Any]:
    return {"name": cluster.name, "credential": cluster.credential, "enabled": cluster.enabled}


def _record(actor: Actor, action: str, cluster: Cluster, before: dict[str, Any] | None, reason: str = "") -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="cluster",
        object_id=cluster.public_id,
        before=before,
        after=_snapshot(cluster),
        reason=reason,
    )
