"""Pytest plugin: the standing cast of people, and factories of the rows that most tests start from.

Factories write rows directly, without services: a test's starting point is not what it tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from django.db.backends.postgresql.operations import DatabaseOperations

from fleet.models import Cluster, CompatibilityCell, GpuProfile, Grant, QuotaHold
from models_app.models import Deployment, Revision
from portal.audit.domain.actors import Actor, ActorKind, Channel, Scope
from portal.kernel.clock import now
from portal.tenancy.domain.roles import OrganizationRole, PlatformRole, ProjectRole
from portal.tenancy.models import Organization, OrganizationMembership, Project, ProjectMembership, User, unscoped

PASSWORD = "correct-horse-battery"
IMAGE = f"registry.invalid/llama.cpp@sha256:{hashlib.sha256(b'llama.cpp').hexdigest()}"

_number = count(1)


@pytest.fixture(scope="session", autouse=True)
def _flush_past_append_only() -> Iterator[None]:
    """Let the flush between ``transaction=True`` tests truncate the audit table, whose triggers refuse everybody else."""
    original = DatabaseOperations.sql_flush

    def sql_flush(self: DatabaseOperations, *args: Any, **kwargs: Any) -> list[str]:
        statements = original(self, *args, **kwargs)
        if not statements:
            return statements
        return ["SET LOCAL session_replication_role = replica;", *statements]

    DatabaseOperations.sql_flush = sql_flush  # type: ignore[method-assign]
    yield
    DatabaseOperations.sql_flush = original  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Cast:
    """Everybody of design §7. ``project`` is of ``organization``; ``other_project`` of ``other_organization``.

    ``viewer``, ``member``, ``lead`` have that role in ``project``; ``org_admin`` administers ``organization``;
    ``outsider`` is a lead of ``other_project`` and nothing here; ``other_lead`` is a second lead of ``project``.
    """

    organization: Organization
    project: Project
    other_organization: Organization
    other_project: Project
    viewer: User
    member: User
    lead: User
    other_lead: User
    org_admin: User
    fleet_operator: User
    auditor: User
    platform_admin: User
    outsider: User

    def people(self) -> dict[str, User]:
        """Name -> person, in the order of the role table."""
        names = (
            "viewer",
            "member",
            "lead",
            "other_lead",
            "org_admin",
            "fleet_operator",
            "auditor",
            "platform_admin",
            "outsider",
        )
        return {name: getattr(self, name) for name in names}


def actor_of(
    user: User,
    channel: Channel = Channel.BROWSER,
    *,
    scopes: frozenset[Scope] = frozenset(Scope),
    token_id: str = "",
    request_id: str = "",
) -> Actor:
    """The actor that ``user`` acts as, through ``channel``."""
    return Actor(
        kind=ActorKind.USER,
        id=user.public_id,
        channel=channel,
        user_pk=user.pk,
        token_id=token_id,
        request_id=request_id,
        scopes=scopes,
    )


def make_user(name: str = "", **fields: Any) -> User:
    """A person with ``PASSWORD``; the address is made from the name."""
    number = next(_number)
    name = name or f"person {number}"
    fields.setdefault("email", f"{name.replace(' ', '.').replace('_', '.')}-{number}@example.org")
    fields.setdefault("password", PASSWORD)
    return User.objects.create_user(name=name, **fields)


def make_organization(slug: str = "", **fields: Any) -> Organization:
    slug = slug or f"organization-{next(_number)}"
    return Organization.objects.create(slug=slug, name=fields.pop("name", slug.title()), **fields)


def make_project(organization: Organization, slug: str = "", **fields: Any) -> Project:
    slug = slug or f"project-{next(_number)}"
    fields.setdefault("namespace", f"sw-{organization.slug}-{slug}"[:32].rstrip("-"))
    return Project.objects.create(organization=organization, slug=slug, name=fields.pop("name", slug.title()), **fields)


def make_member(project: Project, user: User, role: ProjectRole = ProjectRole.MEMBER) -> ProjectMembership:
    return ProjectMembership.objects.create(project=project, user=user, role=role.value)


def make_profile(name: str = "", *, cells: bool = True, **fields: Any) -> GpuProfile:
    """H100s (``nvidia.com/gpu``, 80 GiB) unless said otherwise, with cells llamacpp/gguf and vllm/safetensors."""
    name = name or f"h100-{next(_number)}"
    profile = GpuProfile.objects.create(
        **{
            "name": name,
            "title": name.upper(),
            "vendor": "nvidia",
            "architecture": "sm_90",
            "product": "NVIDIA-H100-80GB-HBM3",
            "resource_name": "nvidia.com/gpu",
            "vram_bytes": 80 * 2**30,
            "node_selector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            **fields,
        }
    )
    if cells:
        make_cell(profile, backend="llamacpp", model_format="gguf")
        make_cell(profile, backend="vllm", model_format="safetensors")
    return profile


def make_cell(profile: GpuProfile, *, backend: str, model_format: str, **fields: Any) -> CompatibilityCell:
    fields.setdefault("support", "full")
    fields.setdefault("image", IMAGE if fields["support"] != "unsupported" else "")
    return CompatibilityCell.objects.create(profile=profile, backend=backend, model_format=model_format, **fields)


def make_cluster(name: str = "", **fields: Any) -> Cluster:
    name = name or f"cluster-{next(_number)}"
    fields.setdefault("credential", name)
    return Cluster.objects.create(name=name, **fields)


def make_grant(project: Project, profile: GpuProfile, devices: int = 8, **fields: Any) -> Grant:
    return Grant.objects.create(project=project, profile=profile, devices=devices, **fields)


def make_hold(
    grant: Grant, consumer_id: str, devices: int = 1, *, consumer_kind: str = "deployment", **fields: Any
) -> QuotaHold:
    return QuotaHold.objects.create(
        grant=grant,
        project=grant.project,
        consumer_kind=consumer_kind,
        consumer_id=consumer_id,
        devices=devices,
        **fields,
    )


def make_deployment(
    grant: Grant, cluster: Cluster, *, author: User, name: str = "", hold: bool = True, **fields: Any
) -> Deployment:
    """A declared plain llama.cpp deployment with revision 1, and its hold unless ``hold`` is False."""
    number = next(_number)
    name = name or f"model-{number}"
    configuration: dict[str, Any] = fields.pop("configuration", {})
    with unscoped("a test's starting point"):
        deployment = Deployment.objects.create(
            **{
                "project": grant.project,
                "cluster": cluster,
                "grant": grant,
                "profile": grant.profile,
                "name": name,
                "object_name": f"{name}-{number}",
                "engine": "plain",
                **fields,
            }
        )
        Revision.objects.create(
            deployment=deployment,
            project=grant.project,
            number=deployment.revision,
            image=IMAGE,
            backend="llamacpp",
            artifact_source="hf://acme/tiny",
            artifact_revision="0" * 40,
            model_format="gguf",
            configuration=configuration,
            profile=grant.profile,
            profile_version=grant.profile.version,
            profile_snapshot={},
            created_by=author,
        )
        if hold:
            make_hold(grant, deployment.public_id, deployment.replicas_max * deployment.devices_per_replica)
    return deployment


def make_cast() -> Cast:
    """The cast, in a fresh database."""
    organization = make_organization("acme", name="Acme Research")
    other_organization = make_organization("globex", name="Globex")
    project = make_project(organization, "vision", name="Vision")
    other_project = make_project(other_organization, "speech", name="Speech")
    people: dict[str, User] = {}
    for role in ProjectRole:
        people[role.value] = make_user(role.value)
        make_member(project, people[role.value], role)
    people["other_lead"] = make_user("other_lead")
    make_member(project, people["other_lead"], ProjectRole.LEAD)
    people["org_admin"] = make_user("org_admin")
    OrganizationMembership.objects.create(
        organization=organization, user=people["org_admin"], role=OrganizationRole.ADMIN.value
    )
    for platform_role in (PlatformRole.FLEET_OPERATOR, PlatformRole.AUDITOR, PlatformRole.PLATFORM_ADMIN):
        people[platform_role.value] = make_user(platform_role.value, platform_role=platform_role.value)
    people["outsider"] = make_user("outsider")
    make_member(other_project, people["outsider"], ProjectRole.LEAD)
    return Cast(
        organization=organization,
        project=project,
        other_organization=other_organization,
        other_project=other_project,
        **people,
    )


@pytest.fixture
def cast(db: None) -> Cast:
    """The standing cast (design §7)."""
    return make_cast()


@pytest.fixture
def act(cast: Cast) -> Callable[[str], Actor]:
    """``act("lead")`` is the actor of that member of the cast, through the browser."""
    return lambda name: actor_of(cast.people()[name])


@pytest.fixture
def at() -> datetime:
    """The instant the test starts, in UTC."""
    return now()
