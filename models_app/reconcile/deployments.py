"""The loop that makes deployments true.

One pass, for a row that is wanted:

1. Connect; an engine whose operator is not installed waits, its quota held.
2. Read every object of the deployment; render the revision. What breaks a rule is refused here and never sent.
3. Decide (``domain.convergence``); a pass that a later generation has overtaken does nothing.
4. Create, or change exactly the version that was read; a conflict is shown with field and owner, and nothing is forced.
5. Read the state, the pods and the events; derive the phase.

For a row that is no longer wanted: delete what is ours, wait for each pod, end the hold, archive.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fleet.cluster import ClusterError, ClusterPort, Conflict, Invalid, ObjectRef, StaleObject, connect
from fleet.domain.drift import drift
from fleet.domain.stamps import FIELD_MANAGER, hash_of, owner_of, stamped
from fleet.reconcile.failures import message_of, reason_of
from models_app.domain.convergence import Act, Key, Live, Plan, Step, Wanted, decide
from models_app.domain.phases import WaitReason
from models_app.domain.replicas import ReplicaRange, ReplicasPlan, replicas_plan
from models_app.domain.sightings import Sighting
from models_app.engines.base import Engine, Manifest, RefusedManifest, rendered
from models_app.engines.registry import engine_of
from models_app.models import Deployment
from models_app.reconcile.outcomes import (
    cannot,
    never,
    operator_wait,
    progress,
    refused_by_cluster,
    removed,
    removing,
)
from models_app.reconcile.reading import live_of, makers_left, operator_missing, read_objects, read_sighting, refs_of
from models_app.reconcile.recording import lock_grant, record_pass
from models_app.reconcile.view import AppliedNow, DeploymentPass, load_pass
from models_app.selectors.specs import CONSUMER_KIND, owner_stamp, spec_of_revision
from portal.work.domain.outcomes import Outcome, Retry
from portal.work.loop import Reconciler

_TRIES = 3
"""Readings of an object that changes under the pass, before the row's backoff takes over."""

_REPLICAS = ".spec.replicas"
_AUTOSCALER = "HorizontalPodAutoscaler"


class DeploymentReconciler(Reconciler[Deployment, DeploymentPass]):
    """``slipway/kind=deployment``."""

    kind = CONSUMER_KIND
    model = Deployment

    def load(self, pk: int) -> DeploymentPass:
        return load_pass(pk)

    def reconcile(self, view: DeploymentPass, now: datetime) -> Outcome:
        engine = engine_of(view.deployment.engine)
        try:
            port = connect(view.deployment.cluster.credential)
            if view.wanted:
                return _make_true(port, view, engine, now)
            return _take_down(port, view, engine, now)
        except ClusterError as error:
            return refused_by_cluster(view, error, now)

    def lock_first(self, view: DeploymentPass, outcome: Outcome) -> None:
        lock_grant(view)

    def record(self, row: Deployment, view: DeploymentPass, outcome: Outcome, now: datetime) -> None:
        record_pass(row, view, outcome, now)


RECONCILER = DeploymentReconciler()


def _make_true(port: ClusterPort, view: DeploymentPass, engine: Engine, now: datetime) -> Outcome:
    missing = operator_missing(port, view, engine)
    if missing:
        return operator_wait(view, missing, now)
    refs = refs_of(view, engine)
    for _ in range(_TRIES):
        found = read_objects(port, refs)
        plan_replicas = _replicas(view, found, engine)
        try:
            manifests = _manifests(view, engine, plan_replicas)
        except RefusedManifest as refusal:
            return _refused(port, view, engine, found, now, reason=WaitReason.MISCONFIGURED, message=str(refusal))
        plan = decide(
            wanted=[Wanted(key, hash_of(manifest)) for key, manifest in manifests.items()],
            live=_lives(view, found, manifests),
            generation=view.deployment.generation,
        )
        if plan.stale:
            return Retry(error="A later generation was applied already; this pass did nothing.", after=timedelta(seconds=1))
        if plan.foreign:
            return _foreign(port, view, engine, found, plan, now)
        try:
            _carry_out(port, view, refs, found, manifests, plan, plan_replicas)
        except StaleObject:
            continue
        except Conflict as error:
            seen = _see(port, view, engine, found)
            return cannot(view, seen, now, reason=reason_of(error), message=message_of(error))
        except Invalid as error:
            return _refused(port, view, engine, found, now, reason=reason_of(error), message=message_of(error))
        return progress(view, _see(port, view, engine, found), now)
    return Retry(error="The objects changed under each of the tries.", after=timedelta(seconds=1))


def _take_down(port: ClusterPort, view: DeploymentPass, engine: Engine, now: datetime) -> Outcome:
    refs = refs_of(view, engine)
    found = read_objects(port, refs, tolerate_missing_kinds=True)
    plan = decide(wanted=(), live=_lives(view, found, {}), generation=view.deployment.generation)
    if plan.stale:
        return Retry(error="A later generation was applied already; this pass did nothing.", after=timedelta(seconds=1))
    for step in plan.steps:
        if step.act is Act.DELETE:
            port.delete(refs[step.key], uid=step.uid, propagation=_propagation(refs[step.key]))
            view.notes.deleted.append(refs[step.key])
    if view.notes.deleted:
        # The answer to a deletion says nothing of its end: look again.
        found = read_objects(port, refs, tolerate_missing_kinds=True)
    ours = {key: live for key, live in found.items() if owner_of(live) == owner_stamp(view.deployment)}
    seen = _see(port, view, engine, ours)
    view.notes.makers_left = makers_left(port, view, engine, ours.values())
    if ours or seen.live_pods or view.notes.makers_left:
        return removing(view, seen, now)
    return removed(view, seen, now)


def _propagation(ref: ObjectRef) -> str:
    """A Deployment goes after its pods: in the background, one held by somebody's finalizer would keep them running for
    ever (C21). An operator's object is its operator's to take apart."""
    return "Foreground" if ref.kind == "Deployment" else "Background"


def _replicas(view: DeploymentPass, found: Mapping[Key, Mapping[str, Any]], engine: Engine) -> ReplicasPlan:
    row = view.deployment
    had_autoscaler = any(item.kind == _AUTOSCALER for item in view.applied)
    return replicas_plan(
        ReplicaRange(row.replicas_min, row.replicas_max),
        live=found.get((engine.main[1], row.object_name)),
        manager=FIELD_MANAGER,
        autoscaler_was_ours=had_autoscaler,
    )


def _manifests(view: DeploymentPass, engine: Engine, plan: ReplicasPlan) -> dict[Key, Manifest]:
    """The stamped objects by key, main one first."""
    row = view.deployment
    return {
        (manifest["kind"], manifest["metadata"]["name"]): stamped(
            manifest, owner=owner_stamp(row), generation=row.generation, request_id=row.request_id
        )
        for manifest in rendered(engine, spec_of_revision(row, view.revision, plan))
    }


def _lives(
    view: DeploymentPass, found: Mapping[Key, Mapping[str, Any]], manifests: Mapping[Key, Manifest]
) -> dict[Key, Live]:
    return {
        key: live_of(key, live, view.deployment, drifted=key in manifests and bool(drift(manifests[key], live)))
        for key, live in found.items()
    }


def _carry_out(
    port: ClusterPort,
    view: DeploymentPass,
    refs: Mapping[Key, ObjectRef],
    found: dict[Key, dict[str, Any]],
    manifests: Mapping[Key, Manifest],
    plan: Plan,
    replicas: ReplicasPlan,
) -> None:
    """Do the plan's steps, each noted as it is done, so that a later one's refusal hides none of them; ``found`` follows."""
    for step in _ordered(plan, replicas):
        if step.act is Act.DELETE:
            port.delete(refs[step.key], uid=step.uid)
            view.notes.deleted.append(refs[step.key])
            found.pop(step.key, None)
        elif step.act is not Act.WAIT_GONE:
            found[step.key] = _apply(port, manifests[step.key], step, replicas)
            _note(view, step.key, manifests[step.key], found[step.key], fresh=True)
    for key, manifest in manifests.items():
        if key in found and key not in view.notes.applied:
            _note(view, key, manifest, found[key], fresh=False)


def _note(view: DeploymentPass, key: Key, manifest: Manifest, live: Mapping[str, Any], *, fresh: bool) -> None:
    view.notes.applied[key] = AppliedNow(
        ref=ObjectRef.of(manifest),
        fresh=fresh,
        uid=live["metadata"]["uid"],
        resource_version=live["metadata"]["resourceVersion"],
        spec_hash=hash_of(manifest),
        manifest=manifest,
    )


def _ordered(plan: Plan, replicas: ReplicasPlan) -> list[Step]:
    """An autoscaler leaves before its field is taken back, so that it does not write it once more."""
    if not replicas.take_back:
        return list(plan.steps)
    return sorted(plan.steps, key=lambda step: step.act is not Act.DELETE)


def _apply(port: ClusterPort, manifest: Manifest, step: Step, replicas: ReplicasPlan) -> dict[str, Any]:
    if step.act is Act.CREATE:
        return port.apply(manifest)
    if replicas.take_back and "replicas" in manifest.get("spec", {}):
        return port.takeover(manifest, fields=(_REPLICAS,), uid=step.uid, resource_version=step.resource_version)
    return port.apply(manifest, uid=step.uid, resource_version=step.resource_version)


def _see(port: ClusterPort, view: DeploymentPass, engine: Engine, found: Mapping[Key, Mapping[str, Any]]) -> Sighting:
    seen = read_sighting(port, view, found.get((engine.main[1], view.deployment.object_name)), engine)
    view.notes.seen = seen
    view.notes.standing = frozenset(found)
    return seen


def _foreign(
    port: ClusterPort,
    view: DeploymentPass,
    engine: Engine,
    found: Mapping[Key, Mapping[str, Any]],
    plan: Plan,
    now: datetime,
) -> Outcome:
    names = ", ".join(f"{kind} {name}" for kind, name in plan.foreign)
    message = f"{names} in namespace {view.namespace} is not Slipway's: it is left alone. Remove or rename it."
    seen = _see(port, view, engine, {key: live for key, live in found.items() if key not in plan.foreign})
    return cannot(view, seen, now, reason="ForeignObject", message=message)


def _refused(
    port: ClusterPort,
    view: DeploymentPass,
    engine: Engine,
    found: Mapping[Key, Mapping[str, Any]],
    now: datetime,
    *,
    reason: str,
    message: str,
) -> Outcome:
    """A manifest that will never be taken: the end of a deployment that was never there, a stop for one that is or was.

    One that rests idle has objects and no pods: a bad revision of it must not take it away.
    """
    seen = _see(port, view, engine, found)
    if view.deployment.observed.get("ready_once") or seen.live_pods or found:
        return cannot(view, seen, now, reason=reason, message=message)
    return never(view, now, reason=reason, message=message)
