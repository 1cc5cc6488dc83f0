"""The states of a deployment (contract §2) and why it waits; derived from what was observed, never folded into one."""

from __future__ import annotations

from enum import StrEnum


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
