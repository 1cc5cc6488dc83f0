"""What the project's own pages show beside one app's rows: names across floors."""

from __future__ import annotations

from django.db.models import Count

from models_app.models import Deployment
from portal.tenancy.models import Project


def deployment_names(*, project: Project) -> dict[str, str]:
    """Public id -> name of every deployment the project ever had; ``project`` has been authorized by the caller."""
    return dict(Deployment.objects.for_project(project).values_list("public_id", "name"))


def deployment_phases(*, project: Project) -> dict[str, int]:
    """Phase -> standing deployments in it; ``project`` has been authorized by the caller."""
    rows = Deployment.objects.for_project(project).filter(archived_at=None).order_by("phase")
    return dict(rows.values_list("phase").annotate(number=Count("pk")))
