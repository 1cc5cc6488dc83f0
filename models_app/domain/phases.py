"""The states of a deployment (contract §2) and why it waits; derived from what was observed, never folded into one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from models_app.domain.sightings import PodSighting, Sighting, WorkloadSighting


class Phase(StrEnum):
    """The state the page leads with. Cached, serving and draining have their own facts beside it."""

    DECLARED = "declared"
    ADMITTED = "admitted"
    LOADING = "loading"
    READY = "ready"
    IDLE = "idle"
    DEGRADED = "degraded"
    FAILED = "failed"
    DELETING = "deleting"
    UNKNOWN = "unknown"


class WaitReason(StrEnum):
    """Why it waits (contract §2); one of these, with numbers in the message."""

    AWAITING_APPROVAL = "AwaitingApproval"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_MATCHING_PROFILE = "NoMatchingProfile"
    INCOMPATIBLE = "Incompatible"
    DOES_NOT_FIT = "DoesNotFit"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    WAITING_FOR_PREEMPTION = "WaitingForPreemption"
    NODE_UNAVAILABLE = "NodeUnavailable"
    ARTIFACT_NOT_CACHED = "ArtifactNotCached"
    IMAGE_PULL_FAILING = "ImagePullFailing"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    SUSPENDED = "Suspended"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    MISCONFIGURED = "Misconfigured"


class Substage(StrEnum):
    """Where a pod is on its way to Ready (contract §2, ``loading``)."""

    SCHEDULING = "scheduling"
    PULLING_IMAGE = "pulling image"
    FETCHING = "fetching"
    LOADING_WEIGHTS = "loading weights"


class FactState(StrEnum):
    """``not_measured`` is said aloud: nothing observes this state yet."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_MEASURED = "not_measured"


NOT_MEASURED_TEXT = "not measured here"


@dataclass(frozen=True, slots=True)
class Fact:
    """One state of contract §2, apart from all others. ``observed_at`` is when this was last known; None: never."""

    name: str
    state: FactState
    text: str
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """The phase that leads, one reason (a ``WaitReason`` or a Kubernetes one, "" when none) and a sentence with numbers."""

    phase: Phase
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the row says: wanted or not, how many, whether its newest generation was applied, and what stops it.

    ``problem`` is why it cannot go on by itself (a conflict with field and owner, a refused manifest), "" when nothing.
    """

    wanted: bool
    replicas_min: int
    replicas_max: int
    applied: bool
    cluster_reachable: bool | None = None
    cluster_error: str = ""
    problem_reason: str = ""
    problem: str = ""
    operator_missing: str = ""


def substage_of(pod: PodSighting) -> Substage:
    """How far a pod that is not ready has come."""
    if not pod.scheduled:
        return Substage.SCHEDULING
    if pod.initializing:
        return Substage.FETCHING
    if pod.running:
        return Substage.LOADING_WEIGHTS
    return Substage.PULLING_IMAGE


def phase_of(declared: Declaration, seen: Sighting | None) -> PhaseReport:
    """The phase, from what the row says and what the last pass saw (None: nothing yet). Pure; no clock."""
    if declared.cluster_reachable is False:
        # Before the first look, that nothing runs yet is known: quota is held, and it waits for its cluster.
        phase = Phase.ADMITTED if seen is None and declared.wanted else Phase.UNKNOWN
        message = declared.cluster_error or "The cluster does not answer."
        return PhaseReport(phase, WaitReason.CLUSTER_UNREACHABLE, message)
    if not declared.wanted:
        return _deleting(seen)
    if declared.problem:
        serving = seen is not None and any(pod.ready for pod in seen.pods)
        return PhaseReport(Phase.DEGRADED if serving else Phase.FAILED, declared.problem_reason, declared.problem)
    if declared.operator_missing:
        return PhaseReport(Phase.ADMITTED, WaitReason.MISCONFIGURED, declared.operator_missing)
    if seen is None or not seen.workload.present:
        return PhaseReport(Phase.ADMITTED, "", "Quota is held; its objects are about to be applied.")
    if seen.workload.deleting_since:
        return PhaseReport(Phase.DEGRADED, "Terminating", _held_text(seen.workload))
    return _serving_phase(declared, seen)


def _serving_phase(declared: Declaration, seen: Sighting) -> PhaseReport:
    workload = seen.workload
    wanted = workload.replicas_wanted if workload.replicas_wanted is not None else declared.replicas_min
    pods = [pod for pod in seen.live_pods if not pod.deleting]
    ready = sum(pod.ready for pod in pods)
    if wanted == 0:
        return PhaseReport(Phase.IDLE, WaitReason.SUSPENDED, "Scaled to zero; raise the minimum to wake it.")
    if ready >= wanted and declared.applied and workload.settled and (workload.updated or 0) >= wanted:
        return PhaseReport(Phase.READY, "", f"{ready} of {wanted} ready.")
    why = why_waiting(workload, pods, wanted=wanted, ready=ready)
    if ready:
        return PhaseReport(Phase.DEGRADED, why.reason, why.message)
    return why


def why_waiting(workload: WorkloadSighting, pods: list[PodSighting], *, wanted: int, ready: int) -> PhaseReport:
    """The most telling reason that ``wanted`` replicas are not all ready: failures before waits, waits before progress."""
    count = f"{ready} of {wanted} ready"
    broken = next((pod for pod in pods if pod.crashing), None)
    if broken is not None:
        exit_text = f", last {broken.last_exit}" if broken.last_exit else ""
        return PhaseReport(
            Phase.FAILED, "CrashLoopBackOff", f"{count}; pod {broken.name} restarted {broken.restarts} times{exit_text}."
        )
    misconfigured = next((pod for pod in pods if pod.misconfigured), None)
    if misconfigured is not None:
        text = f"{count}; pod {misconfigured.name}: {misconfigured.waiting_message or misconfigured.waiting}"
        return PhaseReport(Phase.FAILED, WaitReason.MISCONFIGURED, text)
    pulling = next((pod for pod in pods if pod.pull_failing), None)
    if pulling is not None:
        text = f"{count}; pod {pulling.name}: {pulling.waiting_message or pulling.waiting}"
        return PhaseReport(Phase.LOADING, WaitReason.IMAGE_PULL_FAILING, text)
    if workload.failure_reason:
        quota = "exceeded quota" in workload.failure_message
        reason = WaitReason.WAITING_FOR_QUOTA if quota else WaitReason.MISCONFIGURED
        return PhaseReport(Phase.LOADING, reason, f"{count}; {workload.failure_message}")
    unbound = [pod for pod in pods if pod.scheduled is False]
    if unbound:
        message = (unbound[0].scheduling_message or "no node has room for it").rstrip(".")
        text = f"{count}; {len(unbound)} waiting for a node: {message}. When: no estimate."
        return PhaseReport(Phase.LOADING, WaitReason.WAITING_FOR_CAPACITY, text)
    if workload.stuck_message:
        return PhaseReport(Phase.LOADING, "ProgressDeadlineExceeded", f"{count}; {workload.stuck_message}")
    stages = sorted({substage_of(pod) for pod in pods if not pod.ready}, key=list(Substage).index)
    detail = f"; {', '.join(stages)}" if stages else ""
    return PhaseReport(Phase.LOADING, WaitReason.WAITING_FOR_PODS_READY, f"{count}{detail}.")


def _deleting(seen: Sighting | None) -> PhaseReport:
    if seen is None:
        return PhaseReport(Phase.DELETING, "", "Being removed.")
    if seen.workload.present and seen.workload.deleting_since and seen.workload.finalizers:
        return PhaseReport(Phase.DELETING, "HeldByFinalizer", _held_text(seen.workload))
    if seen.live_pods:
        return PhaseReport(Phase.DELETING, "Draining", f"{len(seen.live_pods)} pods are ending their accepted work.")
    return PhaseReport(Phase.DELETING, "", "Being removed.")


def _held_text(workload: WorkloadSighting) -> str:
    if not workload.finalizers:
        return f"Deleting since {workload.deleting_since}."
    return f"Deleting since {workload.deleting_since}, held by {', '.join(workload.finalizers)}."
