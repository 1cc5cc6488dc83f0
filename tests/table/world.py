"""One of each object that an address can name, all in the cast's project and organization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fleet.models import GpuInterval
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from portal.kernel.clock import now
from portal.tenancy.models import User
from portal.tenancy.services.tokens import token_create
from routing.services.keys import key_create
from tests.cast import Cast, actor_of, make_cast, make_cluster, make_deployment, make_grant, make_profile

ANONYMOUS = "anonymous"
UNKNOWN = "0" * 20
"""Behind a prefix: the id of an object that never existed."""


@dataclass(frozen=True, slots=True)
class World:
    """``ids`` names the objects that rows speak of; ``people`` is the cast without the second lead."""

    cast: Cast
    ids: dict[str, str]

    @property
    def people(self) -> dict[str, User]:
        return self.cast.people()

    def stranger_ids(self) -> dict[str, str]:
        """The same names with ids that never existed."""
        return {name: f"{value.split('_')[0]}_{UNKNOWN}" for name, value in self.ids.items()}


def deployment_payload(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "profile": "h100",
        "source": "hf://acme/tiny",
        "source_revision": "a" * 40,
        "source_file": "tiny.gguf",
        "backend": "llamacpp",
    }


def make_world() -> World:
    """In a fresh database."""
    cast = make_cast()
    member, lead = actor_of(cast.member), actor_of(cast.lead)
    profile = make_profile("h100")
    cluster = make_cluster("local")
    grant = make_grant(cast.project, profile, devices=8)
    deployment = make_deployment(grant, cluster, author=cast.member, name="tiny-chat")
    submitted, approved = (
        request_submit(actor=member, kind="deployment", project=cast.project, payload=deployment_payload(name))
        for name in ("asked", "made")
    )
    request_decide(actor=lead, public_id=approved.public_id, verdict="approve")
    key, _ = key_create(actor=member, project=cast.project, name="laptop")
    token, _ = token_create(actor=member, name="laptop", scopes=["read"], expires_in_days=1)
    GpuInterval.objects.create(
        cluster=cluster,
        pod_uid="uid-1",
        resource_name="nvidia.com/gpu",
        namespace=cast.project.namespace,
        pod_name="tiny-1",
        project_id=cast.project.public_id,
        consumer_kind="deployment",
        consumer_id=deployment.public_id,
        profile_name="h100",
        devices=1,
        gpu_equiv_ppm=1_000_000,
        started_at=now() - timedelta(minutes=5),
        start_basis="pod_scheduled",
    )
    return World(
        cast=cast,
        ids={
            "organization": cast.organization.public_id,
            "project": cast.project.public_id,
            "profile": profile.public_id,
            "cluster": cluster.public_id,
            "grant": grant.public_id,
            "deployment": deployment.public_id,
            "request": submitted.public_id,
            "approved": approved.public_id,
            "key": key.public_id,
            "token": token.public_id,
            "viewer": cast.viewer.public_id,
            "org_admin": cast.org_admin.public_id,
        },
    )
