"""Many of everything that a list can show, around one world."""

from __future__ import annotations

from datetime import timedelta

from fleet.models import CoverageGap, GpuInterval, Grant, MeterAnomaly, Node, ObservedPod
from models_app.models import AppliedObject, Deployment, Revision, StateChange
from portal.approvals.domain.states import RequestState
from portal.approvals.models import Decision, Request
from portal.audit.domain.actors import Scope
from portal.kernel.clock import now
from portal.tenancy.domain.roles import OrganizationRole, ProjectRole
from portal.tenancy.models import OrganizationMembership, unscoped
from portal.tenancy.services.tokens import token_create
from routing.services.keys import key_create
from tests.cast import (
    IMAGE,
    actor_of,
    make_cluster,
    make_deployment,
    make_grant,
    make_hold,
    make_member,
    make_organization,
    make_profile,
    make_project,
    make_user,
)
from tests.table.world import World, deployment_payload


def add_to(world: World, first: int, last: int) -> None:
    """Rows number ``first`` to ``last`` of every kind that an address of the table lists."""
    with unscoped("a test's crowd"):
        for number in range(first, last + 1):
            _people_and_projects(world, number)
            _requests(world, number)
            _deployments(world, number)
            _fleet(world, number)


def _people_and_projects(world: World, number: int) -> None:
    cast = world.cast
    user = make_user(f"person-{number:02}")
    make_member(cast.project, user, ProjectRole.VIEWER)
    OrganizationMembership.objects.create(organization=cast.organization, user=user, role=OrganizationRole.ADMIN.value)
    make_organization(f"organization-{number:02}")
    key_create(actor=actor_of(cast.lead), project=cast.project, name=f"key {number}")
    for person in cast.people().values():
        token_create(actor=actor_of(person), name=f"token {number}", scopes=[Scope.READ], expires_in_days=1)


def _requests(world: World, number: int) -> None:
    cast = world.cast
    for kind, payload in (("deployment", deployment_payload(f"asked-{number}")),):
        for state in (RequestState.SUBMITTED, RequestState.DENIED):
            request = Request.objects.create(
                kind=kind,
                project=cast.project,
                requester=cast.member,
                title=f"{kind} {number}",
                payload=payload,
                state=state.value,
                submitted_at=now(),
            )
            if state is RequestState.DENIED:
                Decision.objects.create(request=request, stage=1, verdict="deny", decider=cast.lead, reason="No.")


def _deployments(world: World, number: int) -> None:
    cast = world.cast
    project = make_project(cast.organization, f"crowd-{number:02}")
    for user in (cast.viewer, cast.member, cast.lead):
        make_member(project, user, ProjectRole.LEAD)
    profile = make_profile(f"profile-{number:02}")
    cluster = make_cluster(f"crowd-{number:02}")
    make_deployment(make_grant(cast.project, profile), cluster, author=cast.member, name=f"mine-{number}")
    make_deployment(make_grant(project, profile), cluster, author=cast.member, name=f"theirs-{number}")
    watched = Deployment.objects.get(public_id=world.ids["deployment"])
    make_holder = {"deployment": watched, "project": cast.project}
    make_hold(Grant.objects.get(public_id=world.ids["grant"]), f"dep_{number:020}")
    StateChange.objects.create(**make_holder, phase="loading", reason="x", message=str(number))
    AppliedObject.objects.create(
        **make_holder,
        api_version="v1",
        kind="Service",
        namespace=cast.project.namespace,
        name=f"object-{number}",
        spec_hash="0",
        generation=1,
        manifest={"kind": "Service"},
    )
    Revision.objects.create(
        **make_holder,
        number=100 + number,
        image=IMAGE,
        backend="llamacpp",
        artifact_source="hf://acme/tiny",
        model_format="gguf",
        profile=watched.profile,
        profile_version=1,
        created_by=cast.member,
    )


def _fleet(world: World, number: int) -> None:
    cast = world.cast
    deployment = Deployment.objects.select_related("cluster").get(public_id=world.ids["deployment"])
    cluster, at = deployment.cluster, now()
    node = Node.objects.create(
        cluster=cluster,
        uid=f"node-{number}",
        name=f"node-{number:02}",
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        capacity={"nvidia.com/gpu": "8"},
        allocatable={"nvidia.com/gpu": "8"},
        ready=True,
        resource_version="1",
        observed_at=at,
    )
    for owner, project_id in ((deployment.public_id, cast.project.public_id), ("dep_other", cast.other_project.public_id)):
        ObservedPod.objects.create(
            cluster=cluster,
            uid=f"pod-{owner}-{number}",
            namespace=cast.project.namespace,
            name=f"pod-{number}",
            node_name=node.name,
            owner_kind="deployment",
            owner_id=owner,
            project_id=project_id,
            devices={"nvidia.com/gpu": 1},
            phase="Running",
            ready=True,
            status={"phase": "Running"},
            created_at=at,
            resource_version="1",
            observed_at=at,
        )
    GpuInterval.objects.create(
        cluster=cluster,
        pod_uid=f"crowd-{number}",
        resource_name="nvidia.com/gpu",
        namespace=cast.project.namespace,
        pod_name=f"pod-{number}",
        project_id=cast.project.public_id,
        consumer_kind="deployment",
        consumer_id=f"dep_{number:020}",
        profile_name=f"profile-{number:02}",
        devices=1,
        gpu_equiv_ppm=1_000_000,
        started_at=at - timedelta(minutes=2),
        start_basis="pod_scheduled",
    )
    CoverageGap.objects.create(
        cluster=cluster, started_at=at - timedelta(minutes=number), ended_at=at, reason="observer was down"
    )
    MeterAnomaly.objects.create(cluster=cluster, pod_uid=f"pod-{deployment.public_id}-{number}", finding="end_before_start")
