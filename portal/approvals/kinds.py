"""The kinds of request; the floor that sees what a kind needs registers it in its ``AppConfig.ready`` (design §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from portal.approvals.domain.previews import Preview
from portal.approvals.models import Request
from portal.audit.domain.actors import Actor
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What fulfilment wrote, named as text because it lives above.

    ``complete`` means the row itself is what was asked (a grant that has started), so the request is fulfilled in the
    same transaction; False leaves that to the owner's loop. ``expires_at`` ends the request, and with it what was made.
    """

    kind: str
    id: str
    complete: bool = False
    expires_at: datetime | None = None


class Clean(Protocol):
    def __call__(self, payload: Mapping[str, Any], *, project: Project) -> Payload:
        """The payload in its stored shape (JSON values, defaults filled in); InvalidInput names each wrong field."""


class MakePreview(Protocol):
    def __call__(self, payload: Payload, *, project: Project, now: datetime) -> Preview:
        """What approving the cleaned ``payload`` would mean at ``now``. Reads only."""


class Fulfil(Protocol):
    def __call__(self, *, request: Request, actor: Actor) -> Made:
        """Write the row and hold its quota, inside the deciding transaction, by parts only; an error leaves it undecided.

        ``request`` is locked and still submitted; locks after it go grants by id, then the consumer row. ``actor`` decides.
        """


class Revoke(Protocol):
    def __call__(self, *, request: Request, actor: Actor, reason: str) -> None:
        """Remove what the request had made, whatever state that is in (C37); safe to repeat. Parts only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKind:
    """``title`` makes the request's one line from the cleaned payload.

    ``revoke_permission`` is what taking an approval back needs; None: the same as deciding.
    """

    name: str
    label: str
    decide_permission: Permission
    title: Callable[[Payload], str]
    clean: Clean
    preview: MakePreview
    fulfil: Fulfil
    revoke: Revoke
    revoke_permission: Permission | None = None

    @property
    def needs_to_revoke(self) -> Permission:
        return self.revoke_permission or self.decide_permission


_kinds: dict[str, RequestKind] = {}


def register(kind: RequestKind) -> None:
    """Offer ``kind``; a second one of the same name is a programming error."""
    if _kinds.get(kind.name, kind) is not kind:
        raise ValueError(f"request kind {kind.name!r} is registered twice")
    _kinds[kind.name] = kind


def kind_of(name: str) -> RequestKind:
    """The kind called ``name``; InvalidInput naming those that exist."""
    kind = _kinds.get(name)
    if kind is None:
        known = ", ".join(sorted(_kinds)) or "none"
        raise InvalidInput(
            f"There is no request kind {name!r}.", fields={"kind": [f"Unknown kind {name!r}; known kinds: {known}."]}
        )
    return kind


def known_kind(name: str) -> RequestKind | None:
    """The kind called ``name``, or None: rows may outlive the kind that they were made with."""
    return _kinds.get(name)


def all_kinds() -> Iterator[RequestKind]:
    """The registered kinds, by name."""
    return iter(sorted(_kinds.values(), key=lambda kind: kind.name))
