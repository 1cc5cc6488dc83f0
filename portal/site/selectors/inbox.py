"""What waits for a person's decision, each with the quota picture it would change; a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from fleet.domain.inventory import ProfileCapacity
from fleet.selectors.capacity import profile_capacity
from fleet.selectors.grants import GrantUse, grants_with_use_of
from fleet.selectors.profiles import profile_list
from portal.approvals.models import Request
from portal.approvals.selectors.requests import inbox_list
from portal.audit.domain.actors import Actor

SHOWN = 100


@dataclass(frozen=True, slots=True)
class InboxRow:
    """``devices`` is what approval would hold or grant. ``use`` is the project's live grant of that profile, None without
    one; ``after`` what would be held (or granted) then. ``capacity`` is the fleet's, None without a node.
    """

    request: Request
    profile: str
    devices: int | None
    use: GrantUse | None
    after: int | None
    over: bool
    capacity: ProfileCapacity | None


@dataclass(frozen=True, slots=True)
class Inbox:
    """The oldest ``SHOWN``; ``more`` when others wait behind them."""

    rows: tuple[InboxRow, ...]
    more: bool


def inbox_page(*, actor: Actor) -> Inbox:
    """The actor's inbox, oldest first."""
    waiting = list(inbox_list(actor=actor)[: SHOWN + 1])
    uses = {(use.grant.project_id, use.grant.profile.name): use for use in grants_with_use_of(actor=actor)}
    profiles = {profile.name: profile for profile in profile_list()}
    capacities = profile_capacity()
    rows = []
    for request in islice(waiting, SHOWN):
        name = str(request.payload.get("profile", ""))
        profile = profiles.get(name)
        devices = _devices(request)
        use = uses.get((request.project_id, name))
        after = _after(request, use, devices)
        capacity = capacities.get(profile.pk) if profile is not None else None
        rows.append(
            InboxRow(
                request=request,
                profile=profile.title if profile is not None else name,
                devices=devices,
                use=use,
                after=after,
                over=after is not None and use is not None and request.kind == "deployment" and after > use.grant.devices,
                capacity=capacity if capacity is not None and capacity.nodes else None,
            )
        )
    return Inbox(rows=tuple(rows), more=len(waiting) > SHOWN)


def _devices(request: Request) -> int | None:
    payload = request.payload
    if request.kind == "grant":
        return _whole(payload.get("devices"))
    each, replicas = _whole(payload.get("devices_per_replica")), _whole(payload.get("replicas_max"))
    return each * replicas if each is not None and replicas is not None else None


def _after(request: Request, use: GrantUse | None, devices: int | None) -> int | None:
    if devices is None:
        return None
    if request.kind == "grant":
        return devices
    return use.held + devices if use is not None else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
