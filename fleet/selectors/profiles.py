"""GPU profiles and clusters: no tenant's, so every signed-in person may read them."""

from __future__ import annotations

from django.db.models import Prefetch, Q, QuerySet

from fleet.models import Cluster, CompatibilityCell, GpuProfile
from portal.kernel.errors import NotFound


def profile_list(*, enabled_only: bool = False) -> QuerySet[GpuProfile]:
    """Profiles with their matrix (``cells``), by name."""
    cells = CompatibilityCell.objects.order_by("backend", "model_format")
    rows = GpuProfile.objects.prefetch_related(Prefetch("cells", queryset=cells)).order_by("name")
    return rows.filter(enabled=True) if enabled_only else rows


def profile_get(*, ref: str) -> GpuProfile:
    """The profile of a public id or a name, with its matrix; NotFound otherwise."""
    profile = profile_list().filter(Q(public_id=ref) | Q(name=ref)).first()
    if profile is None:
        raise NotFound
    return profile


def cluster_list(*, enabled_only: bool = False) -> QuerySet[Cluster]:
    """Registered clusters, by name."""
    rows = Cluster.objects.order_by("name")
    return rows.filter(enabled=True) if enabled_only else rows


def cluster_get(*, ref: str) -> Cluster:
    """The cluster of a public id or a name; NotFound otherwise."""
    cluster = Cluster.objects.filter(Q(public_id=ref) | Q(name=ref)).first()
    if cluster is None:
        raise NotFound
    return cluster
