from fleet.models.clusters import Cluster, Node, ProjectSpace
from fleet.models.grants import Grant, QuotaHold
from fleet.models.ledger import CoverageGap, GpuInterval, MeterAnomaly
from fleet.models.observed import ObservedObject, ObservedPod
from fleet.models.profiles import CompatibilityCell, GpuProfile

__all__ = [
    "Cluster",
    "CompatibilityCell",
    "CoverageGap",
    "GpuInterval",
    "GpuProfile",
    "Grant",
    "MeterAnomaly",
    "Node",
    "ObservedObject",
    "ObservedPod",
    "ProjectSpace",
    "QuotaHold",
]
