"""What a pass reads from the cluster. Every read raises ``ClusterError`` on any doubt, so absence is always proven (D3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleet.cluster import Absent, ClusterPort, NotInstalled, ObjectRef
from fleet.domain.stamps import GENERATION, generation_of, hash_of, owner_of
from models_app.domain.convergence import Key, Live
from models_app.domain.sightings import (
    EventSighting,
    PodSighting,
    Sighting,
    WorkloadSighting,
    deployment_sighting,
    event_sighting,
    pod_sighting,
)
from models_app.engines.base import Engine
from models_app.models import Deployment
from models_app.reconcile.view import DeploymentPass
from models_app.selectors.specs import owner_stamp

EVENTS_KEPT = 20


def refs_of(view: DeploymentPass, engine: Engine) -> dict[Key, ObjectRef]:
    """Every object that this deployment has, may have, or was once applied: all carry its object name."""
    name, namespace = view.deployment.object_name, view.namespace
    refs = {(kind, name): ObjectRef(version, kind, namespace, name) for version, kind in engine.kinds}
    for row in view.applied:
        refs.setdefault((row.kind, row.name), ObjectRef(row.api_version, row.kind, row.namespace, row.name))
    return refs


def read_objects(
    port: ClusterPort, refs: Mapping[Key, ObjectRef], *, tolerate_missing_kinds: bool = False
) -> dict[Key, dict[str, Any]]:
    """The objects that exist; a key that is missing is proven absent. A kind that the cluster does not have has none of
    them, which only a pass that removes things may take for an answer."""
    found = {}
    for key, ref in refs.items():
        try:
            live = port.get(ref)
        except NotInstalled:
            if not tolerate_missing_kinds:
                raise
            continue
        if live is not None:
            found[key] = live
    return found


def live_of(key: Key, live: Mapping[str, Any], deployment: Deployment, *, drifted: bool) -> Live:
    """An object as ``domain.convergence`` looks at it."""
    metadata = live["metadata"]
    return Live(
        key=key,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        ours=owner_of(live) == owner_stamp(deployment),
        generation=generation_of(live),
        spec_hash=hash_of(live),
        drifted=drifted,
        deleting="deletionTimestamp" in metadata,
    )


def read_sighting(port: ClusterPort, view: DeploymentPass, main: Mapping[str, Any] | None, engine: Engine) -> Sighting:
    """The workload, its pods and its newest events."""
    pods = read_pods(port, view, engine)
    workload = _workload(main, engine, pods)
    names = {view.deployment.object_name, *(pod.name for pod in pods)}
    return Sighting(workload=workload, pods=pods, events=_events(port, view.namespace, names), complete=True)


def read_pods(port: ClusterPort, view: DeploymentPass, engine: Engine) -> tuple[PodSighting, ...]:
    """Every pod labelled as this deployment's, and every known one whose label was taken off; oldest first.

    A known uid that is in no list is asked for by name: only "not found" or another uid under its name proves it gone.
    """
    selector = _selector(view, engine)
    found = {
        pod["metadata"]["uid"]: pod
        for pod in port.list_all("v1", "Pod", namespace=view.namespace, label_selector=selector).items
    }
    for uid, name in view.known_pods:
        if uid in found:
            continue
        pod = port.get(ObjectRef("v1", "Pod", view.namespace, name))
        if pod is not None and pod["metadata"]["uid"] == uid:
            found[uid] = pod
    sightings = [pod_sighting(pod, generation_annotation=GENERATION) for pod in found.values()]
    return tuple(sorted(sightings, key=lambda pod: (pod.created_at, pod.name)))


def makers_left(port: ClusterPort, view: DeploymentPass, engine: Engine, found: Iterable[Mapping[str, Any]]) -> bool:
    """Whether anything in the cluster could still start a pod of this deployment: an object of ours that nobody is
    deleting, or a ReplicaSet of it that outlived its Deployment's order to go."""
    if any("deletionTimestamp" not in live["metadata"] for live in found):
        return True
    selector = _selector(view, engine)
    sets = port.list_all("apps/v1", "ReplicaSet", namespace=view.namespace, label_selector=selector).items
    return any("deletionTimestamp" not in item["metadata"] and item.get("spec", {}).get("replicas", 0) for item in sets)


def _selector(view: DeploymentPass, engine: Engine) -> str:
    return engine.pod_selector(deployment_id=view.deployment.public_id, object_name=view.deployment.object_name)


def operator_missing(port: ClusterPort, view: DeploymentPass, engine: Engine) -> str:
    """Why the engine cannot work on this cluster, "" when it can: without its kind, its operator is not there."""
    if not engine.operator:
        return ""
    version, kind = engine.main
    try:
        port.get(ObjectRef(version, kind, view.namespace, view.deployment.object_name))
    except NotInstalled:
        return f"{engine.operator} operator not installed on cluster {view.deployment.cluster.name}."
    return ""


def _workload(main: Mapping[str, Any] | None, engine: Engine, pods: tuple[PodSighting, ...]) -> WorkloadSighting:
    if engine.main == ("apps/v1", "Deployment") or main is None:
        return deployment_sighting(main)
    return _operated(main, pods)


def _operated(main: Mapping[str, Any], pods: tuple[PodSighting, ...]) -> WorkloadSighting:
    """An operator's object: its pods are counted, its phase and message are shown."""
    metadata, spec, status = main["metadata"], main.get("spec", {}), main.get("status") or {}
    wanted = spec.get("serverless", {}).get("minReplicas", 0)
    live = [pod for pod in pods if not pod.ended and not pod.deleting]
    failed = status.get("phase") == "Failed"
    return WorkloadSighting(
        present=True,
        uid=metadata["uid"],
        generation=0,
        observed_generation=0,
        replicas_wanted=wanted,
        replicas=len(live),
        updated=len(live),
        ready=sum(pod.ready for pod in live),
        available=sum(pod.ready for pod in live),
        deleting_since=metadata.get("deletionTimestamp", ""),
        finalizers=tuple(metadata.get("finalizers") or ()),
        failure_reason="Failed" if failed else "",
        failure_message=str(status.get("message", "")) if failed else "",
    )


def _events(port: ClusterPort, namespace: str, names: set[str]) -> tuple[EventSighting, ...]:
    """The newest events about the deployment's objects, newest first; an event's subject is told by its name."""
    try:
        items = port.list_all("v1", "Event", namespace=namespace).items
    except Absent:
        return ()
    ours = [event_sighting(item) for item in items if _about(item, names)]
    return tuple(sorted(ours, key=lambda event: event.at, reverse=True)[:EVENTS_KEPT])


def _about(event: Mapping[str, Any], names: set[str]) -> bool:
    """Pods and ReplicaSets carry the object's name as a prefix."""
    subject = event.get("involvedObject", {}).get("name", "")
    return subject in names or any(subject.startswith(f"{name}-") for name in names)
