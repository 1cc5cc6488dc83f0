"""GPU profiles and their compatibility matrix: what fleet operators have tested and offer."""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError, transaction

from fleet.models import CompatibilityCell, GpuProfile
from fleet.models.profiles import Support
from portal.audit.domain.actors import Actor
from portal.audit.services import event_record
from portal.kernel.clock import now
from portal.kernel.errors import Conflict, InvalidInput, NotFound, Stale
from portal.tenancy.domain.roles import Permission
from portal.tenancy.selectors.permissions import require_platform

_PINNED = re.compile(r"[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64}")
_EXTENDED_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_FIELDS = (
    "title",
    "vendor",
    "architecture",
    "product",
    "resource_name",
    "vram_bytes",
    "node_selector",
    "tolerations",
    "driver_range",
    "enabled",
)


def profile_create(
    *,
    actor: Actor,
    name: str,
    title: str,
    vendor: str,
    architecture: str,
    product: str,
    resource_name: str,
    vram_bytes: int,
    node_selector: dict[str, str],
    tolerations: list[dict[str, Any]] | None = None,
    driver_range: str = "",
) -> GpuProfile:
    """A new class of capacity. ``resource_name`` is the extended resource its nodes offer; ``vram_bytes`` is per device."""
    require_platform(actor=actor, permission=Permission.FLEET_MANAGE)
    profile = GpuProfile(
        name=name,
        title=title,
        vendor=vendor,
        architecture=architecture,
        product=product,
        resource_name=resource_name,
        vram_bytes=vram_bytes,
        node_selector=node_selector,
        tolerations=tolerations or [],
        driver_range=driver_range,
    )
    _check(profile)
    with transaction.atomic(durable=True):
        try:
            with transaction.atomic():
                profile.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict(f"There is a profile {name!r} already.", fields={"name": ["Taken."]}) from error
        _record(actor, "profile.create", profile, None)
    return profile


def profile_update(*, actor: Actor, public_id: str, version: int | None = None, **changes: Any) -> GpuProfile:
    """Change fields of a profile (any but its name) and raise its version; revisions keep the one they were made with."""
    require_platform(actor=actor, permission=Permission.FLEET_MANAGE)
    unknown = sorted(set(changes) - set(_FIELDS))
    if unknown:
        raise InvalidInput("The change is not valid.", fields={name: ["Not a field that changes."] for name in unknown})
    with transaction.atomic(durable=True):
        profile = _locked(public_id)
        if version is not None and version != profile.version:
            raise Stale("The profile was changed since you loaded it: load it again and repeat.")
        before = _snapshot(profile)
        for name, value in changes.items():
            setattr(profile, name, value)
        _check(profile)
        if _snapshot(profile) == before:
            return profile
        profile.version += 1
        profile.save(update_fields=[*changes, "version"])
        _record(actor, "profile.update", profile, before)
    return profile


def cell_set(
    *,
    actor: Actor,
    profile_public_id: str,
    backend: str,
    model_format: str,
    support: Support | str,
    image: str = "",
    environment: dict[str, str] | None = None,
    reason: str = "",
    tested_on_node: str = "",
) -> CompatibilityCell:
    """What runs ``backend`` with ``model_format`` on the profile, and what proves it; raises the profile's version.

    A supported cell names an image pinned by digest (D7); an unsupported one says why. ``tested_on_node`` dates the
    evidence now, by this actor.
    """
    require_platform(actor=actor, permission=Permission.FLEET_MANAGE)
    try:
        level = Support(support)
    except ValueError as error:
        known = ", ".join(Support)
        raise InvalidInput("The cell is not valid.", fields={"support": [f"One of: {known}."]}) from error
    if level is not Support.UNSUPPORTED and not _PINNED.fullmatch(image):
        raise InvalidInput(
            "The cell is not valid.", fields={"image": ["Pin the image by digest: registry/name@sha256:<64 hex digits>."]}
        )
    with transaction.atomic(durable=True):
        profile = _locked(profile_public_id)
        values: dict[str, Any] = {
            "support": level.value,
            "image": image,
            "environment": environment or {},
            "reason": reason,
            "tested_on_node": tested_on_node,
            "tested_by": actor.id if tested_on_node else "",
            "tested_at": now() if tested_on_node else None,
        }
        cell = CompatibilityCell.objects.filter(profile=profile, backend=backend, model_format=model_format).first()
        before = _cell_snapshot(cell) if cell is not None else None
        if cell is None:
            cell = CompatibilityCell(profile=profile, backend=backend, model_format=model_format)
        for name, value in values.items():
            setattr(cell, name, value)
        after = _cell_snapshot(cell)
        if before == after:
            return cell
        cell.save()
        profile.version += 1
        profile.save(update_fields=["version"])
        event_record(
            actor=actor,
            action="profile.cell_set",
            object_kind="profile",
            object_id=profile.public_id,
            before=before,
            after=after,
        )
    return cell


def _locked(public_id: str) -> GpuProfile:
    profile = GpuProfile.objects.select_for_update(of=("self",), no_key=True).filter(public_id=public_id).first()
    if profile is None:
        raise NotFound
    return profile


def _check(profile: GpuProfile) -> None:
    problems: dict[str, list[str]] = {}
    if not _NAME.fullmatch(profile.name):
        problems["name"] = ["1 to 40 lower-case letters, digits and dashes, ending in a letter or digit."]
    for name in ("title", "vendor", "architecture", "product"):
        if not getattr(profile, name):
            problems[name] = ["Give one."]
    if not _EXTENDED_RESOURCE.fullmatch(profile.resource_name):
        problems["resource_name"] = ["An extended resource such as nvidia.com/gpu."]
    if not isinstance(profile.vram_bytes, int) or profile.vram_bytes <= 0:
        problems["vram_bytes"] = ["Bytes per device, more than 0."]
    if not profile.node_selector or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in profile.node_selector.items()
    ):
        problems["node_selector"] = ["At least one label that only this class of node has, text to text."]
    if problems:
        raise InvalidInput("The profile is not valid.", fields=problems)


def _snapshot(profile: GpuProfile) -> dict[str, Any]:
    return {"name": profile.name, **{name: getattr(profile, name) for name in _FIELDS}}


def _cell_snapshot(cell: CompatibilityCell) -> dict[str, Any]:
    return {
        "backend": cell.backend,
        "model_format": cell.model_format,
        "support": cell.support,
        "image": cell.image,
        "environment": cell.environment,
        "reason": cell.reason,
        "tested_on_node": cell.tested_on_node,
    }


def _record(actor: Actor, action: str, profile: GpuProfile, before: dict[str, Any] | None) -> None:
    event_record(
        actor=actor,
        action=action,
        object_kind="profile",
        object_id=profile.public_id,
        before=before,
        after=_snapshot(profile),
    )
