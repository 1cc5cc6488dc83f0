"""A request kind for tests: fulfil holds devices of a real grant by the real part, and writes down what happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fleet.models import Grant
from fleet.services.parts.holds import hold_end, hold_raise
from portal.approvals.domain.previews import Check, CheckVerdict, Preview
from portal.approvals.kinds import Made, Payload, RequestKind
from portal.approvals.models import Request
from portal.audit.domain.actors import Actor
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project

NAME = "toy"


class Toy:
    """``payload`` is ``{"devices": int, "grant": public id or absent}``; ``events`` is what its hooks were called for."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.refuse = ""
        self.complete = False
        self.expires_at: datetime | None = None

    def clean(self, payload: Mapping[str, Any], *, project: Project) -> Payload:
        if not isinstance(payload.get("devices"), int):
            raise InvalidInput("The toy is not valid.", fields={"devices": ["A whole number."]})
        return {"devices": payload["devices"], "grant": payload.get("grant", "")}

    def preview(self, payload: Payload, *, project: Project, now: datetime) -> Preview:
        verdict = CheckVerdict.REFUSE if self.refuse else CheckVerdict.OK
        return Preview(checks=(Check("shape", verdict, self.refuse or "fits", field="devices"),), devices=payload["devices"])

    def fulfil(self, *, request: Request, actor: Actor) -> Made:
        if request.payload["grant"]:
            grant = Grant.objects.for_project(request.project).get(public_id=request.payload["grant"])
            hold_raise(
                actor=actor,
                grant_id=grant.pk,
                consumer_kind=NAME,
                consumer_id=request.public_id,
                devices=request.payload["devices"],
            )
        self.events.append(("fulfil", request.public_id))
        return Made(kind=NAME, id=request.public_id, complete=self.complete, expires_at=self.expires_at)

    def revoke(self, *, request: Request, actor: Actor, reason: str) -> None:
        hold_end(actor=actor, consumer_kind=NAME, consumer_id=request.public_id)
        self.events.append(("revoke", request.public_id))

    def as_kind(self) -> RequestKind:
        return RequestKind(
            name=NAME,
            label="Toy",
            decide_permission=Permission.REQUEST_DECIDE_DEPLOYMENT,
            title=lambda payload: f"{payload['devices']} devices",
            clean=self.clean,
            preview=self.preview,
            fulfil=self.fulfil,
            revoke=self.revoke,
        )
