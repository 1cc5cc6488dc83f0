"""A cluster in memory, for speed and for faults at exact moments; the contract suite runs on it and on the real one."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fleet.cluster import (
    Absent,
    ApiResource,
    BadLine,
    ClusterError,
    Conflict,
    Gone,
    Listing,
    NotInstalled,
    ObjectRef,
    StaleObject,
    Unreachable,
    Version,
    WatchEvent,
)
from fleet.domain.stamps import FIELD_MANAGER

Json = dict[str, Any]
_VERBS = ("create", "delete", "get", "list", "patch", "watch")
KINDS = {
    ("v1", "Namespace", "namespaces", False),
    ("v1", "Node", "nodes", False),
    ("v1", "Pod", "pods", True),
    ("v1", "Event", "events", True),
    ("v1", "Service", "services", True),
    ("v1", "ConfigMap", "configmaps", True),
    ("v1", "ResourceQuota", "resourcequotas", True),
    ("v1", "LimitRange", "limitranges", True),
    ("apps/v1", "Deployment", "deployments", True),
    ("apps/v1", "ReplicaSet", "replicasets", True),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", True),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", True),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True),
}


@dataclass
class _Stored:
    content: Json
    owners: dict[str, set[str]] = field(default_factory=dict)
    """Field path -> managers."""


@dataclass
class _Fault:
    method: str
    error: ClusterError
    times: int
    took_effect: bool
    kind: str


class FakeCluster:
    """``ClusterPort`` in memory. ``calls`` logs (method, ObjectRef or kind); ``before`` holds hooks run outside the lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[ObjectRef, _Stored] = {}
        self._log: list[tuple[int, str, Json]] = []
        self._version = 100
        self._oldest = 0
        self._faults: list[_Fault] = []
        self.calls: list[tuple[str, ObjectRef | str]] = []
        self.before: dict[str, Callable[[ObjectRef | str], None]] = {}
        self.kinds = set(KINDS)

    # What a test does to it

    def fail(self, method: str, error: ClusterError, *, times: int = 1, took_effect: bool = False, kind: str = "") -> None:
        """The next ``times`` calls of ``method`` ("*" = any) on ``kind`` raise; ``took_effect``: after doing it."""
        self._faults.append(_Fault(method, error, times, took_effect, kind))

    def mend(self) -> None:
        self._faults.clear()

    def put(self, content: Json, *, manager: str = "somebody") -> Json:
        """Create or replace an object as another manager, whatever stands."""
        with self._lock:
            ref = ObjectRef.of(content)
            old = self._objects.get(ref)
            new = copy.deepcopy(content)
            new["metadata"]["uid"] = old.content["metadata"]["uid"] if old else str(uuid4())
            owners = {path: {manager} for path in _leaves(content)}
            return self._store(ref, new, owners, "MODIFIED" if old else "ADDED")

    def edit(self, ref: ObjectRef, path: str, value: Any, *, manager: str) -> Json:
        """Set one field (``.spec.replicas``) as ``manager``, who becomes its only owner."""
        with self._lock:
            stored = self._objects[ref]
            content = copy.deepcopy(stored.content)
            _set(content, path, value)
            return self._store(ref, content, {**stored.owners, path: {manager}}, "MODIFIED")

    def remove(self, ref: ObjectRef) -> None:
        """Gone at once, whatever its finalizers."""
        with self._lock:
            self._drop(ref)

    def objects(self, kind: str = "") -> list[Json]:
        with self._lock:
            return [copy.deepcopy(item.content) for ref, item in self._objects.items() if kind in ("", ref.kind)]

    def compact(self) -> None:
        """Watches from before now answer 410."""
        with self._lock:
            self._oldest = self._version
            self._log.clear()

    # ClusterPort

    def get(self, ref: ObjectRef) -> Json | None:
        with self._call("get", ref):
            self._served(ref.api_version, ref.kind)
            stored = self._objects.get(self._named(ref))
            return None if stored is None else copy.deepcopy(stored.content)

    def apply(
        self, manifest: Json, *, uid: str | None = None, resource_version: str | None = None, dry_run: bool = False
    ) -> Json:
        if (uid is None) != (resource_version is None):
            raise ValueError("an apply carries uid and resource_version both, or neither to create")
        with self._call("apply", ObjectRef.of(manifest)):
            return self._apply(manifest, uid, resource_version, dry_run=dry_run, force=False)

    def takeover(self, manifest: Json, *, fields: Collection[str], uid: str, resource_version: str) -> Json:
        with self._call("takeover", ObjectRef.of(manifest)):
            try:
                return self._apply(manifest, uid, resource_version, dry_run=False, force=False)
            except Conflict as conflict:
                if not all(path in fields for path, _ in conflict.fields):
                    raise
            return self._apply(manifest, uid, resource_version, dry_run=False, force=True)

    def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str,
        resource_version: str | None = None,
        grace: int | None = None,
        propagation: str = "Background",
    ) -> Json | None:
        with self._call("delete", ref):
            self._served(ref.api_version, ref.kind)
            ref = self._named(ref)
            stored = self._objects.get(ref)
            if stored is None:
                return None
            meta = stored.content["metadata"]
            if meta["uid"] != uid:
                raise StaleObject(f"{ref}: another object has that name")
            if resource_version is not None and meta["resourceVersion"] != resource_version:
                raise StaleObject(f"{ref}: changed since it was read")
            if meta.get("finalizers"):
                if "deletionTimestamp" in meta:
                    return copy.deepcopy(stored.content)
                content = copy.deepcopy(stored.content)
                content["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
                return self._store(ref, content, stored.owners, "MODIFIED")
            self._drop(ref)
            if ref.kind == "Namespace":
                for inside in [other for other in self._objects if other.namespace == ref.name]:
                    self._drop(inside)
            return {"kind": "Status", "status": "Success"}

    def list_all(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        limit: int = 500,
    ) -> Listing:
        with self._call("list_all", kind):
            self._served(api_version, kind)
            found = [
                copy.deepcopy(stored.content)
                for ref, stored in sorted(self._objects.items(), key=lambda item: (item[0].namespace, item[0].name))
                if (ref.api_version, ref.kind) == (api_version, kind)
                and namespace in (None, ref.namespace)
                and _selected(stored.content, label_selector)
            ]
            return Listing(found, str(self._version))

    def watch(
        self, api_version: str, kind: str, *, resource_version: str, timeout_s: int, namespace: str | None = None
    ) -> Iterator[WatchEvent | BadLine]:
        with self._call("watch", kind):
            self._served(api_version, kind)
            if int(resource_version) < self._oldest:
                raise Gone("too old resource version")
            events = [
                WatchEvent(what, copy.deepcopy(item), item["metadata"]["resourceVersion"])
                for version, what, item in self._log
                if version > int(resource_version)
                and (item["apiVersion"], item["kind"]) == (api_version, kind)
                and namespace in (None, item["metadata"].get("namespace"))
            ]
        yield from events

    def api_resources(self) -> list[ApiResource]:
        with self._call("api_resources", ""):
            return [ApiResource(*item, _VERBS) for item in sorted(self.kinds)]

    def version(self) -> Version:
        with self._call("version", ""):
            return Version("v1.37.0", {"gitVersion": "v1.37.0"})

    # Inside

    def _call(self, method: str, about: ObjectRef | str) -> _Call:
        return _Call(self, method, about)

    def _apply(self, manifest: Json, uid: str | None, version: str | None, *, dry_run: bool, force: bool) -> Json:
        ref = ObjectRef.of(manifest)
        namespaced = self._served(ref.api_version, ref.kind)
        if namespaced and ObjectRef("v1", "Namespace", "", ref.namespace) not in self._objects:
            raise Absent(f'namespaces "{ref.namespace}" not found')
        stored = self._objects.get(ref)
        if stored is None:
            if uid is not None:
                raise StaleObject(f"{ref}: no such object any more")
            new = copy.deepcopy(manifest)
            new["metadata"] |= {"uid": str(uuid4()), "creationTimestamp": "2026-12-01T00:00:00Z"}
            new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self._version + 1)}}
            if dry_run:
                return new
            return self._store(ref, new, {path: {FIELD_MANAGER} for path in _leaves(manifest)}, "ADDED")
        meta = stored.content["metadata"]
        if uid is None or meta["uid"] != uid or meta["resourceVersion"] != version:
            raise StaleObject(f"{ref}: not the version that was read")
        content, owners = copy.deepcopy(stored.content), copy.deepcopy(stored.owners)
        wanted = _leaves(manifest)
        taken = [
            (path, owner)
            for path, value in wanted.items()
            for owner in sorted(owners.get(path, set()) - {FIELD_MANAGER})
            if _get(content, path) != value
        ]
        if taken and not force:
            raise Conflict(f"Apply failed with {len(taken)} conflicts", taken)
        for path in [path for path, managers in owners.items() if FIELD_MANAGER in managers and path not in wanted]:
            owners[path].discard(FIELD_MANAGER)
            if not owners[path]:
                del owners[path]
                _unset(content, path)
        for path, value in wanted.items():
            changed = _get(content, path) != value
            _set(content, path, copy.deepcopy(value))
            owners[path] = {FIELD_MANAGER} if changed else owners.get(path, set()) | {FIELD_MANAGER}
        if content == stored.content or dry_run:
            if not dry_run:
                stored.owners = owners
            return content
        return self._store(ref, content, owners, "MODIFIED")

    def _served(self, api_version: str, kind: str) -> bool:
        for known in self.kinds:
            if known[:2] == (api_version, kind):
                return known[3]
        raise NotInstalled(f"the cluster does not serve {kind} of {api_version}")

    def _named(self, ref: ObjectRef) -> ObjectRef:
        return ref if self._served(ref.api_version, ref.kind) else ObjectRef(ref.api_version, ref.kind, "", ref.name)

    def _store(self, ref: ObjectRef, content: Json, owners: dict[str, set[str]], what: str) -> Json:
        self._version += 1
        content["metadata"]["resourceVersion"] = str(self._version)
        self._objects[ref] = _Stored(content, owners)
        self._log.append((self._version, what, copy.deepcopy(content)))
        return copy.deepcopy(content)

    def _drop(self, ref: ObjectRef) -> None:
        stored = self._objects.pop(ref)
        self._version += 1
        stored.content["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((self._version, "DELETED", copy.deepcopy(stored.content)))


class _Call:
    """One call: its hook, then its fault, then the lock."""

    def __init__(self, cluster: FakeCluster, method: str, about: ObjectRef | str) -> None:
        self._cluster, self._method, self._about = cluster, method, about
        self._after: ClusterError | None = None

    def __enter__(self) -> None:
        cluster = self._cluster
        cluster.calls.append((self._method, self._about))
        hook = cluster.before.get(self._method)
        if hook is not None:
            hook(self._about)
        cluster._lock.acquire()
        kind = self._about.kind if isinstance(self._about, ObjectRef) else self._about
        for fault in cluster._faults:
            if fault.times > 0 and fault.method in ("*", self._method) and fault.kind in ("", kind):
                fault.times -= 1
                if not fault.took_effect:
                    cluster._lock.release()
                    raise fault.error
                self._after = fault.error
                return

    def __exit__(self, *raised: object) -> None:
        self._cluster._lock.release()
        if raised[0] is None and self._after is not None:
            raise self._after


def unreachable() -> Unreachable:
    return Unreachable("no answer")


_UNOWNED = {".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.resourceVersion"}


def _leaves(content: Json) -> dict[str, Any]:
    """Field path -> value; lists are one field, and dots in keys are kept apart by ``/`` standing for them."""
    found: dict[str, Any] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, below in value.items():
                walk(f"{path}.{key.replace('.', '~')}", below)
        elif path not in _UNOWNED:
            found[path] = value

    walk("", content)
    return found


def _keys(path: str) -> list[str]:
    return [key.replace("~", ".") for key in path.removeprefix(".").split(".")]


def _get(content: Json, path: str) -> Any:
    value: Any = content
    for key in _keys(path):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _set(content: Json, path: str, value: Any) -> None:
    *above, last = _keys(path)
    for key in above:
        content = content.setdefault(key, {})
    content[last] = value


def _unset(content: Json, path: str) -> None:
    *above, last = _keys(path)
    for key in above:
        content = content.get(key, {})
    content.pop(last, None)


def _selected(content: Json, selector: str | None) -> bool:
    labels = content["metadata"].get("labels", {})
    terms = [term.partition("=") for term in (selector or "").split(",") if term]
    return all(labels.get(key.rstrip("=")) == value.lstrip("=") for key, _, value in terms)
