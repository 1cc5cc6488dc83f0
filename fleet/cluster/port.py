"""What the loops and the observer ask of a cluster, and how it may refuse. Objects are JSON as the API server has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object by name; ``namespace`` is empty for kinds outside namespaces."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectRef:
        meta = manifest["metadata"]
        return cls(manifest["apiVersion"], manifest["kind"], meta.get("namespace", ""), meta["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list: ``resource_version`` is the list's own, the one a watch starts from (C16)."""

    items: list[Json]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """``type`` is ADDED, MODIFIED, DELETED or BOOKMARK; a BOOKMARK only moves the resume point (C17)."""

    type: str
    object: Json
    resource_version: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a watch that is no event: blank, cut off, not JSON. What it was is unknown: list again (C17)."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One kind that the server has; ``name`` is the plural of the path."""

    api_version: str
    kind: str
    name: str
    namespaced: bool
    verbs: tuple[str, ...] = ()


class ClusterError(Exception):
    """Any refusal or silence of a cluster. ``retryable``: the same call may work later with nothing changed by us."""

    retryable = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unreachable(ClusterError):
    """No answer, a cut answer, or a server error: nobody knows what is true there, or whether the call was done (D3)."""


class Unauthorized(ClusterError):
    """401, also after the credential was read again: an alarm, never an empty list (C19)."""


class Forbidden(ClusterError):
    """403: the portal's rights there do not suffice, or admission (quota, a namespace that ends) refuses."""


class StaleObject(ClusterError):
    """409: the object is not the one (uid) or not the version (resourceVersion) that was read, or it exists already."""


class Gone(ClusterError):
    """410: that resource version is no longer kept; list again."""


class TooManyRequests(ClusterError):
    """429; ``retry_after`` in seconds, as the server says, at least 1."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Absent(ClusterError):
    """404 for what the call hangs on: most often the namespace of an applied object."""


class Conflict(ClusterError):
    """409 of a server-side apply: others own fields that the manifest sets.

    ``fields`` are (path as the server writes it, ``.spec.replicas``; the other manager's name).
    """

    retryable = False

    def __init__(self, message: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class Invalid(ClusterError):
    """The server will not take this manifest; ``fields`` are (path, message)."""

    retryable = False

    def __init__(self, message: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class NotInstalled(ClusterError):
    """The cluster has no such kind: its operator is not installed."""

    retryable = False


@dataclass(frozen=True, slots=True)
class Version:
    """``git_version`` such as ``v1.37.0``."""

    git_version: str
    raw: Json = field(default_factory=dict)


class ClusterPort(Protocol):
    """One cluster as one credential sees it; safe to use from several threads. Every method raises ``ClusterError`` only."""

    def get(self, ref: ObjectRef) -> Json | None:
        """The object, or None when the server says that there is none."""

    def apply(
        self, manifest: Json, *, uid: str | None = None, resource_version: str | None = None, dry_run: bool = False
    ) -> Json:
        """Server-side apply as the manager ``slipway``, without force (D4); the object as it is afterwards.

        With ``uid`` and ``resource_version``, as read before, it changes exactly that version of that object. Without them
        it only creates. In every other case: StaleObject, and nothing was written. Conflict names fields of other managers.
        """

    def takeover(self, manifest: Json, *, fields: Collection[str], uid: str, resource_version: str) -> Json:
        """``apply``, and where the only conflicts are on ``fields`` (server paths), apply with force: a listed takeover."""

    def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str,
        resource_version: str | None = None,
        grace: int | None = None,
        propagation: str = "Background",
    ) -> Json | None:
        """Ask for the deletion of exactly that object; ``grace`` in seconds, None = its own.

        ``propagation`` Foreground ends what it owns first, also while a foreign finalizer holds the object itself (C21).

        The answer says nothing of its end: it may live on behind a grace or a finalizer. None: there is none. StaleObject:
        another one has that name, or it was changed since ``resource_version``.
        """

    def list_all(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        limit: int = 500,
    ) -> Listing:
        """All objects, by pages of ``limit``: whole, or an error, never a part (C18). ``namespace`` None = all of them."""

    def watch(
        self, api_version: str, kind: str, *, resource_version: str, timeout_s: int, namespace: str | None = None
    ) -> Iterator[WatchEvent | BadLine]:
        """Events after ``resource_version``; ends in silence after ``timeout_s`` seconds. Gone when too old (C16).

        A BadLine means that an event may be lost; a cut connection raises Unreachable.
        """

    def api_resources(self) -> list[ApiResource]:
        """The kinds that are served, all groups and versions."""

    def version(self) -> Version:
        """What the server says it is."""
