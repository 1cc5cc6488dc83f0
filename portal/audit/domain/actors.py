"""Who acts, and through what: carried by every write down to its audit row."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Channel(StrEnum):
    """The door an act came through (contract §9)."""

    BROWSER = "browser"
    API = "api"
    LOOP = "loop"
    IDENTITY_PROVIDER = "identity_provider"
    COMMAND = "command"


class ActorKind(StrEnum):
    USER = "user"
    SERVICE = "service"
    ANONYMOUS = "anonymous"


class Scope(StrEnum):
    """What a token may be used for; a browser session has both."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Actor:
    """``id`` is a user's public id, or a loop's name. ``user_pk`` is the user's primary key, None for loops.

    ``request_id`` ties a click to its log lines, its audit rows and the object in the cluster.
    """

    kind: ActorKind
    id: str
    channel: Channel
    user_pk: int | None = None
    token_id: str = ""
    request_id: str = ""
    scopes: frozenset[Scope] = field(default_factory=lambda: frozenset(Scope))

    @classmethod
    def service(cls, name: str, *, request_id: str = "", channel: Channel = Channel.LOOP) -> Actor:
        """A loop or a command of Slipway itself."""
        return cls(kind=ActorKind.SERVICE, id=name, channel=channel, request_id=request_id)

    @property
    def is_service(self) -> bool:
        return self.kind is ActorKind.SERVICE
