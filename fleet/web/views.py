"""The fleet: clusters, nodes and devices as last observed, and who holds them. Names of tenants follow their projects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from fleet.selectors.coverage import gaps
from fleet.selectors.nodes import NodeView, fleet_nodes
from fleet.selectors.profiles import cluster_list
from fleet.selectors.progress import local_progress
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.tenancy.selectors.projects import project_list
from portal.tenancy.web.live import live_answer, live_fragment

GAPS_OF = timedelta(days=7)
SQUARES_MAX = 32
"""A node with more devices shows numbers only."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds devices on a node; ``project`` "" when the reader may not know."""

    project: str
    project_id: str
    deployment_id: str
    pod: str
    devices: int
    terminating: bool


@dataclass(frozen=True, slots=True)
class NodeRow:
    node: NodeView
    capacity: int
    used: int
    free: int
    withdrawn: int
    squares: tuple[str, ...]
    holders: tuple[Holder, ...]
    hidden: int
    hidden_devices: int


@dataclass(frozen=True, slots=True)
class ProfileBlock:
    """The nodes of one GPU profile; ``name`` "" when none covers them."""

    name: str
    rows: tuple[NodeRow, ...]
    capacity: int
    used: int
    free: int
    withdrawn: int


@require_safe
def fleet(request: HttpRequest) -> HttpResponse:
    """The whole page; its body follows what changes."""
    return render(request, "fleet/fleet.html", {"body": live_fragment(request, **_live(request.actor))})


@require_safe
def fleet_live(request: HttpRequest) -> HttpResponse:
    return live_answer(request, **_live(request.actor))


def _live(actor: Actor) -> dict[str, Any]:
    return {
        "name": "fleet-body",
        "template": "fleet/_fleet.html",
        "context": _context(actor),
        "url": reverse("fleet-live"),
    }


def _context(actor: Actor) -> dict[str, Any]:
    at = now()
    names = {project.public_id: project.name for project in project_list(actor=actor)}
    rows = [_row(node, names) for node in fleet_nodes()]
    profiles = sorted({row.node.profile_name for row in rows}, key=lambda name: (not name, name))
    return {
        "progress": local_progress(),
        "clusters": list(cluster_list(enabled_only=True)),
        "blocks": [_sum([row for row in rows if row.node.profile_name == name], name) for name in profiles],
        "total": _sum(rows),
        "gaps": gaps(period_start=at - GAPS_OF, period_end=at)[:10],
    }


def _sum(rows: list[NodeRow], name: str = "") -> ProfileBlock:
    return ProfileBlock(
        name=name,
        rows=tuple(rows),
        capacity=sum(row.capacity for row in rows),
        used=sum(row.used for row in rows),
        free=sum(row.free for row in rows),
        withdrawn=sum(row.withdrawn for row in rows),
    )


def _row(node: NodeView, names: dict[str, str]) -> NodeRow:
    capacity = sum(device.capacity for device in node.devices)
    used = sum(device.used for device in node.devices)
    withdrawn = sum(device.withdrawn for device in node.devices)
    seen = [pod for pod in node.pods if pod.project_id in names]
    others = [pod for pod in node.pods if pod.project_id not in names]
    holders = tuple(
        Holder(
            project=names[pod.project_id],
            project_id=pod.project_id,
            deployment_id=pod.owner_id if pod.owner_kind == "deployment" else "",
            pod=pod.name,
            devices=sum(pod.devices.values()),
            terminating=pod.terminating,
        )
        for pod in seen
    )
    return NodeRow(
        node=node,
        capacity=capacity,
        used=used,
        free=sum(device.free for device in node.devices),
        withdrawn=withdrawn,
        squares=_squares(capacity, used, withdrawn),
        holders=holders,
        hidden=len(others),
        hidden_devices=sum(sum(pod.devices.values()) for pod in others),
    )


def _squares(capacity: int, used: int, withdrawn: int) -> tuple[str, ...]:
    if capacity > SQUARES_MAX:
        return ()
    taken = min(used, capacity)
    gone = min(withdrawn, capacity - taken)
    return ("used",) * taken + ("free",) * (capacity - taken - gone) + ("gone",) * gone
