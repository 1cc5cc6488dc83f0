"""The request kind ``grant``: what a project may use of one GPU profile, decided by an administrator of its organization."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Sum

from fleet.domain.grant_states import LIVE, GrantState, may_move
from fleet.domain.grants import HOURS_PER_MONTH, GrantAsk, parsed_ask
from fleet.models import GpuProfile, Grant, QuotaHold
from fleet.selectors.capacity import profile_capacity
from fleet.services.parts.grants import grant_move, grant_put
from portal.approvals.domain.previews import Check, CheckVerdict, Preview
from portal.approvals.kinds import Made, Payload, RequestKind
from portal.approvals.models import Request
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import Conflict, InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project, unscoped


def grant_clean(payload: Mapping[str, Any], *, project: Project) -> Payload:
    """``profile`` (its name), ``devices``, and, each may be null, ``gpu_hours_per_month``, ``starts_at``, ``ends_at``."""
    ask, problems = parsed_ask(payload)
    if ask is not None:
        if ask.ends_at is not None and ask.ends_at <= now():
            problems["ends_at"] = ["The end is in the past."]
        profile = GpuProfile.objects.filter(name=ask.profile).first()
        if profile is None or not profile.enabled:
            known = ", ".join(GpuProfile.objects.filter(enabled=True).order_by("name").values_list("name", flat=True))
            problems["profile"] = [f"There is no GPU profile {ask.profile!r}; there are: {known or 'none yet'}."]
    if ask is None or problems:
        raise InvalidInput("The grant is not valid.", fields=problems)
    return ask.as_payload()


def grant_preview(payload: Payload, *, project: Project, now: datetime) -> Preview:
    """How the ask stands against the real cards, what others were promised (Q4), and what the project has already."""
    ask = _ask(payload)
    profile = GpuProfile.objects.get(name=ask.profile)
    standing = _standing(project, profile)
    held = _held(project, profile)
    checks = [
        _profile_check(profile),
        _fleet_check(ask, profile, standing),
        _start_check(ask, standing, now),
        _end_check(ask, now),
    ]
    if ask.devices < held:
        checks.append(
            Check(
                "held",
                CheckVerdict.WARN,
                f"The project holds {held} devices now: a grant of {ask.devices} stops nothing, and blocks what is new "
                "until enough are free.",
                field="devices",
            )
        )
    facts = [
        ("GPU profile", profile.title),
        ("Now granted", f"{standing.devices} devices" if standing is not None else "nothing"),
        ("Held now", f"{held} devices"),
        ("From", f"{ask.starts_at:%Y-%m-%d %H:%M %Z}" if ask.starts_at else "approval"),
        ("Until", f"{ask.ends_at:%Y-%m-%d %H:%M %Z}" if ask.ends_at else "revoked"),
        ("GPU-hours a month, at most", f"{ask.gpu_hours_per_month:,}" if ask.gpu_hours_per_month else "no limit"),
        ("GPU-hours a month, in full use", f"{ask.devices * HOURS_PER_MONTH:,}"),
        ("Cost", "unknown: no rate set"),
    ]
    return Preview(checks=tuple(check for check in checks if check is not None), devices=ask.devices, facts=tuple(facts))


def grant_fulfil(*, request: Request, actor: Actor) -> Made:
    """Write the grant. One that has started is complete; the request of a later one stays approved until it starts.

    Conflict when its end came while it waited: approving it would end a standing grant, and stop what runs on it.
    """
    ask = _ask(request.payload)
    at = now()
    over = _end_check(ask, at)
    if over is not None:
        raise Conflict(over.text, code="grant_over")
    grant = grant_put(
        actor=actor,
        project=request.project,
        profile=GpuProfile.objects.get(name=ask.profile),
        devices=ask.devices,
        gpu_hours_per_month=ask.gpu_hours_per_month,
        starts_at=ask.starts_at or at,
        ends_at=ask.ends_at,
        approval_id=request.public_id,
        at=at,
    )
    return Made(kind="grant", id=grant.public_id, complete=grant.state != GrantState.PENDING, expires_at=grant.ends_at)


def grant_revoke(*, request: Request, actor: Actor, reason: str) -> None:
    """End the grant, unless a newer approval owns it by now; what holds its devices is stopped."""
    grant = (
        Grant.objects.for_project(request.project)
        .select_related("project__organization", "profile")
        .select_for_update(of=("self",))
        .filter(public_id=request.made_id, approval_id=request.public_id)
        .first()
    )
    to = GrantState.EXPIRED if request.state == "expired" else GrantState.REVOKED
    if grant is None or GrantState(grant.state) not in LIVE:
        return
    if not may_move(GrantState(grant.state), to):  # a grant that never started cannot expire
        to = GrantState.REVOKED
    grant_move(actor=actor, grant=grant, to=to, reason=reason)


def grant_title(payload: Payload) -> str:
    ask = _ask(payload)
    return f"{ask.devices} devices of {ask.profile}"


GRANT = RequestKind(
    name="grant",
    label="GPU grant",
    decide_permission=Permission.REQUEST_DECIDE_GRANT,
    revoke_permission=Permission.GRANT_REVOKE,
    title=grant_title,
    clean=grant_clean,
    preview=grant_preview,
    fulfil=grant_fulfil,
    revoke=grant_revoke,
)


def _ask(payload: Payload) -> GrantAsk:
    ask, problems = parsed_ask(payload)
    if ask is None:
        raise InvalidInput("The grant is not valid.", fields=problems)
    return ask


def _standing(project: Project, profile: GpuProfile) -> Grant | None:
    live = [state.value for state in LIVE]
    return Grant.objects.for_project(project).filter(profile=profile, state__in=live).first()


def _held(project: Project, profile: GpuProfile) -> int:
    holds = QuotaHold.objects.for_project(project).filter(grant__profile=profile, ended_at=None)
    return holds.aggregate(total=Sum("devices"))["total"] or 0


def _profile_check(profile: GpuProfile) -> Check:
    if profile.enabled:
        return Check("profile", CheckVerdict.OK, f"{profile.title} is offered.", field="profile")
    return Check("profile", CheckVerdict.WARN, f"{profile.title} is not offered any more.", field="profile")


def _start_check(ask: GrantAsk, standing: Grant | None, at: datetime) -> Check | None:
    if standing is None or standing.state == GrantState.PENDING or ask.starts_at is None or ask.starts_at <= at:
        return None
    return Check(
        "start",
        CheckVerdict.REFUSE,
        "The project has a grant of this profile already: a change of it takes effect at approval. Leave the start empty.",
        field="starts_at",
    )


def _end_check(ask: GrantAsk, at: datetime) -> Check | None:
    if ask.ends_at is None or at < ask.ends_at:
        return None
    text = f"It was to end at {ask.ends_at:%Y-%m-%d %H:%M %Z}, which has passed: deny it, and ask anew."
    return Check("end", CheckVerdict.REFUSE, text, field="ends_at")


def _fleet_check(ask: GrantAsk, profile: GpuProfile, standing: Grant | None) -> Check:
    """Promises against real cards (Q4). More promised than there is, is for people to decide; never hidden."""
    with unscoped("the sum of promises of a profile spans every project; only the number is shown"):
        others = Grant.objects.filter(profile=profile, state__in=[state.value for state in LIVE])
        promised = others.exclude(pk=standing.pk if standing else None).aggregate(total=Sum("devices"))["total"] or 0
    capacity = profile_capacity(profile_ids=[profile.pk]).get(profile.pk)
    if capacity is None or not capacity.nodes:
        return Check(
            "capacity",
            CheckVerdict.UNKNOWN,
            f"No node with {profile.title} has been seen: whether the devices exist cannot be said. "
            f"Promised to other projects: {promised}.",
            field="devices",
        )
    total = promised + ask.devices
    text = (
        f"{capacity.allocatable} devices of {profile.title} exist, {capacity.free} are free now; "
        f"others were promised {promised}, with this it would be {total}."
    )
    verdict = CheckVerdict.OK if total <= capacity.allocatable else CheckVerdict.WARN
    return Check("capacity", verdict, text, field="devices")
