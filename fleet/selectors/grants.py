"""Grants, and how much of each is held: by every project an actor may read, or by one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet, Sum

from fleet.domain.grant_states import LIVE, GrantState
from fleet.domain.grants import GrantTerms
from fleet.models import GpuProfile, Grant, QuotaHold
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import NotFound
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project
from portal.tenancy.selectors.permissions import projects_where, require


@dataclass(frozen=True, slots=True)
class GrantUse:
    """``held`` is the sum of open holds, ``used`` the same number (what is held is not free, busy or not).

    ``free`` is what may still be held, 0 on a grant that has not started or has ended; ``over`` what is held beyond it.
    """

    grant: Grant
    held: int
    free: int

    @property
    def used(self) -> int:
        return self.held

    @property
    def over(self) -> int:
        return max(0, self.held - self.grant.devices)

    @property
    def percent(self) -> int:
        """Held of granted, 0 to 100, for a bar."""
        return min(100, round(100 * self.held / self.grant.devices)) if self.grant.devices else 0


def grant_list(*, actor: Actor, project: Project | None = None, live_only: bool = False) -> QuerySet[Grant]:
    """The grants of the projects ``actor`` may read (or of ``project``), newest first, with project and profile."""
    if project is not None:
        require(actor=actor, permission=Permission.PROJECT_READ, project=project)
        rows: QuerySet[Grant] = Grant.objects.for_project(project)
    else:
        readable = projects_where(actor=actor, permission=Permission.PROJECT_READ)
        rows = Grant.objects.for_projects(readable.values("pk"))
    if live_only:
        rows = rows.filter(state__in=[state.value for state in LIVE])
    return rows.select_related("project__organization", "profile").order_by("-created_at", "-pk")


def grant_get(*, actor: Actor, public_id: str) -> Grant:
    """NotFound when the grant does not exist for ``actor``."""
    grant = grant_list(actor=actor).filter(public_id=public_id).first()
    if grant is None:
        raise NotFound
    return grant


def grants_with_use(*, project: Project) -> list[GrantUse]:
    """The live grants of ``project`` with what is held of each, by profile name; one query."""
    rows = Grant.objects.for_project(project).filter(state__in=[state.value for state in LIVE])
    return _with_use(rows.select_related("project__organization", "profile").order_by("profile__name", "pk"))


def grants_with_use_of(*, actor: Actor) -> list[GrantUse]:
    """The live grants of every project ``actor`` may read, with what is held of each; one query."""
    return _with_use(grant_list(actor=actor, live_only=True).order_by("project__name", "profile__name", "pk"))


def grant_for(project: Project, profile: GpuProfile) -> Grant | None:
    """The grant that ``project`` may hold devices of ``profile`` on now; None when there is none, or it has not started."""
    grant = (
        Grant.objects.for_project(project)
        .select_related("project__organization", "profile")
        .filter(profile=profile, state__in=[state.value for state in LIVE])
        .first()
    )
    return grant if grant is not None and _usable(grant, now()) else None


def holds_of(*, actor: Actor, grant: Grant) -> QuerySet[QuotaHold]:
    """Who holds devices of ``grant``, largest first."""
    require(actor=actor, permission=Permission.PROJECT_READ, project=grant.project)
    holds: QuerySet[QuotaHold] = QuotaHold.objects.for_project(grant.project).filter(grant=grant, ended_at=None)
    return holds.order_by("-devices", "pk")


def _with_use(rows: QuerySet[Grant]) -> list[GrantUse]:
    at = now()
    held = Sum("holds__devices", filter=Q(holds__ended_at=None), default=0)
    answer = []
    for grant in rows.annotate(held_devices=held):
        total: int = grant.held_devices
        free = max(0, grant.devices - total) if _usable(grant, at) else 0
        answer.append(GrantUse(grant=grant, held=total, free=free))
    return answer


def _usable(grant: Grant, at: datetime) -> bool:
    terms = GrantTerms(
        devices=grant.devices, state=GrantState(grant.state), starts_at=grant.starts_at, ends_at=grant.ends_at
    )
    return terms.usable_at(at)
