"""The loop that makes project spaces true: namespace, quota fence, limits, network policies, role binding.

A space that is wanted: each object in order is read, and created, or changed in exactly the version that was read. An object
of the same name that is not this space's is never adopted (D1, D5). A space that is given up: the role binding goes first,
so that nobody comes in; the namespace goes once the loop can prove that it holds nothing of anybody else (D6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from fleet.cluster import ClusterError, ClusterPort, Forbidden, NotInstalled, ObjectRef, StaleObject, connect
from fleet.domain.drift import drift
from fleet.domain.grant_states import USABLE
from fleet.domain.spaces import SPACE_KIND, GrantShare, SpaceSpec, follows_generation, rendered
from fleet.domain.stamps import Owner, generation_of, hash_of, is_newer, owner_of
from fleet.models import GpuProfile, Grant, ProjectSpace, QuotaHold
from fleet.reconcile.failures import SYNCED, outcome_of
from portal.tenancy.models import unscoped
from portal.work import hints
from portal.work.domain.conditions import Condition, Truth
from portal.work.domain.outcomes import Blocked, Outcome, Retry, Settled, Wait
from portal.work.loop import Reconciler
from portal.work.models import Desired

_NEWCOMERS = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
"""What the cluster itself puts into each namespace."""

_PASSING = frozenset({"Event", "PodMetrics"})
"""Kinds that record what happened; they hold nothing of anybody."""

_TRIES = 3
_LOOK_AGAIN = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class SpaceView:
    """What one pass works from."""

    spec: SpaceSpec
    wanted: bool
    generation: int
    credential: str
    request_id: str


class SpaceReconciler(Reconciler[ProjectSpace, SpaceView]):
    """``slipway/kind=space``."""

    kind = SPACE_KIND
    model = ProjectSpace

    def load(self, pk: int) -> SpaceView:
        with unscoped("loop: spaces"):
            space = ProjectSpace.objects.select_related("project", "cluster").get(pk=pk)
            held = Coalesce(Sum("holds__devices", filter=Q(holds__ended_at=None)), 0)
            grants = Grant.objects.for_project(space.project).annotate(held=held).select_related("profile").order_by("pk")
            usable = {state.value for state in USABLE}
            shares = tuple(
                GrantShare(grant.profile.resource_name, grant.devices if grant.state in usable else 0, grant.held)
                for grant in grants
            )
        resources = tuple(GpuProfile.objects.order_by("resource_name").values_list("resource_name", flat=True).distinct())
        owner = Owner(SPACE_KIND, space.public_id, space.project.public_id)
        return SpaceView(
            spec=SpaceSpec(owner, space.namespace, resources, shares),
            wanted=space.desired == Desired.PRESENT,
            generation=space.generation,
            credential=space.cluster.credential,
            request_id=space.request_id,
        )

    def reconcile(self, view: SpaceView, now: datetime) -> Outcome:
        manifests = rendered(view.spec, generation=view.generation, request_id=view.request_id)
        try:
            port = connect(view.credential)
            return _make_true(port, view, manifests) if view.wanted else _take_down(port, view, manifests, now)
        except ClusterError as error:
            return outcome_of(error)

    def record(self, row: ProjectSpace, view: SpaceView, outcome: Outcome, now: datetime) -> None:
        """When the space appears, what waits for it in its project is looked at again."""
        if not (isinstance(outcome, Settled) and view.wanted and not row.applied):
            return
        with unscoped("loop: spaces"):
            holds = QuotaHold.objects.filter(project_id=row.project_id, ended_at=None)
            for kind, public_id in holds.values_list("consumer_kind", "consumer_id"):
                hints.nudge(kind, public_id)


RECONCILER = SpaceReconciler()


def _make_true(port: ClusterPort, view: SpaceView, manifests: Iterable[dict[str, Any]]) -> Outcome:
    applied = []
    for manifest in manifests:
        made = _ensure(port, view, manifest)
        if isinstance(made, Outcome):
            return made
        applied.append(_kept(ObjectRef.of(manifest), made))
    return Settled(updates={"applied": applied}, conditions=(Condition(SYNCED, Truth.TRUE, "Applied"),))


def _ensure(port: ClusterPort, view: SpaceView, manifest: dict[str, Any]) -> dict[str, Any] | Outcome:
    """The live object, made or changed as needed; an outcome when that must not be.

    The quota controller writes the fence's status whenever a pod comes or goes: an object that changes between reading and
    writing is read again, a few times.
    """
    ref = ObjectRef.of(manifest)
    for attempt in range(1, _TRIES + 1):
        live = port.get(ref)
        refusal = None if live is None else _refusal(view, ref, live)
        if refusal is not None:
            return refusal
        try:
            if live is None:
                return port.apply(manifest)
            if not _differs(manifest, live):
                return live
            meta = live["metadata"]
            return port.apply(manifest, uid=meta["uid"], resource_version=meta["resourceVersion"])
        except StaleObject:
            if attempt == _TRIES:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _refusal(view: SpaceView, ref: ObjectRef, live: Mapping[str, Any]) -> Outcome | None:
    """Why the object that is there must not be written to now; None when it is ours and stays."""
    if live["metadata"].get("deletionTimestamp"):
        text = f"{ref} is being deleted"
        return Wait(after=_LOOK_AGAIN, reason=text, conditions=(Condition(SYNCED, Truth.FALSE, "Terminating", text),))
    if owner_of(live) != view.spec.owner:
        text = f"{ref} exists already and is not this project's: an operator removes or renames it"
        return Blocked(reason="NameTaken", message=text, conditions=(Condition(SYNCED, Truth.FALSE, "NameTaken", text),))
    if is_newer(live, view.generation):
        return Retry(error=f"overtaken: {ref} carries a later generation")
    return None


def _differs(manifest: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    if follows_generation(manifest) and generation_of(live) != generation_of(manifest):
        return True
    return hash_of(live) != hash_of(manifest) or bool(drift(manifest, live))


def _take_down(port: ClusterPort, view: SpaceView, manifests: list[dict[str, Any]], now: datetime) -> Outcome:
    namespace = ObjectRef.of(manifests[0])
    live = port.get(namespace)
    if live is None or owner_of(live) != view.spec.owner:
        return Settled(updates={"archived_at": now, "applied": []}, conditions=(Condition(SYNCED, Truth.TRUE, "Removed"),))
    if is_newer(live, view.generation):
        return Retry(error="overtaken: the namespace carries a later generation")
    if live["metadata"].get("deletionTimestamp"):
        return Wait(after=_LOOK_AGAIN, reason="the namespace is ending")
    _shut(port, view, manifests)
    foreign, unreadable = _others(port, view.spec.namespace, manifests)
    if foreign:
        return _kept_namespace(Wait(after=timedelta(minutes=1), reason="NotEmpty"), f"still holds {', '.join(foreign[:5])}")
    if unreadable:
        text = f"may hold {', '.join(unreadable[:5])}, which the portal may not read: an operator deletes it"
        return _kept_namespace(Blocked(reason="NamespaceKept", message=text), text)
    meta = live["metadata"]
    port.delete(namespace, uid=meta["uid"], resource_version=meta["resourceVersion"])
    return Wait(after=timedelta(seconds=2), reason="the namespace is ending")


def _shut(port: ClusterPort, view: SpaceView, manifests: list[dict[str, Any]]) -> None:
    """Remove the project's way in, and bring the fence to what is still held."""
    for manifest in manifests:
        ref = ObjectRef.of(manifest)
        live = port.get(ref) if ref.kind in {"RoleBinding", "ResourceQuota"} else None
        if live is None or owner_of(live) != view.spec.owner:
            continue
        meta = live["metadata"]
        if ref.kind == "RoleBinding":
            port.delete(ref, uid=meta["uid"])
        elif _differs(manifest, live) and not is_newer(live, view.generation):
            port.apply(manifest, uid=meta["uid"], resource_version=meta["resourceVersion"])


def _others(port: ClusterPort, namespace: str, manifests: Iterable[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """What else is in the namespace, and the kinds that could not be read: unknown is not empty (D3)."""
    own = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests} | _NEWCOMERS
    foreign, unreadable = [], []
    for resource in port.api_resources():
        if not resource.namespaced or "list" not in resource.verbs or resource.kind in _PASSING:
            continue
        try:
            listing = port.list_all(resource.api_version, resource.kind, namespace=namespace)
        except NotInstalled:
            continue
        except Forbidden:
            unreadable.append(resource.kind)
            continue
        names = [(resource.kind, item["metadata"]["name"]) for item in listing.items]
        foreign += [f"{kind} {name}" for kind, name in names if (kind, name) not in own]
    return sorted(set(foreign)), sorted(set(unreadable))


def _kept_namespace(outcome: Wait | Blocked, text: str) -> Outcome:
    conditions = (Condition(SYNCED, Truth.FALSE, "NamespaceKept", f"The namespace stays: it {text}."),)
    if isinstance(outcome, Wait):
        return Wait(after=outcome.after, reason=outcome.reason, conditions=conditions)
    return Blocked(reason=outcome.reason, message=outcome.message, conditions=conditions)


def _kept(ref: ObjectRef, live: Mapping[str, Any]) -> dict[str, Any]:
    meta = live["metadata"]
    return {
        "api_version": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": meta["uid"],
        "resource_version": meta["resourceVersion"],
        "spec_hash": hash_of(live),
    }
