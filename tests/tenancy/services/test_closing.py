"""Closing a project ends what it has on every floor, and frees nothing before its pods are proven gone (Q1)."""

import pytest
from django.db import transaction

from fleet.models import Grant, ProjectSpace, QuotaHold
from fleet.services.parts.spaces import space_ensure
from models_app.models import Deployment
from models_app.services.deployments import deployment_delete, deployment_scale
from portal.approvals.models import Request
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from portal.audit.models import AuditEvent
from portal.tenancy.services.organizations import project_close
from tests.cast import actor_of, make_cast, make_cluster, make_deployment, make_grant, make_profile
from tests.together import all_at_once


def test_everything_of_the_project_ends_and_nothing_of_another(cast, act):
    cluster, profile = make_cluster(), make_profile()
    mine = make_grant(cast.project, profile)
    other = make_grant(cast.other_project, profile)
    deployments = [make_deployment(mine, cluster, author=cast.member) for _ in range(2)]
    loose = make_deployment(mine, cluster, author=cast.member, hold=False)
    kept = make_deployment(other, cluster, author=cast.outsider)
    with transaction.atomic():
        space_ensure(actor=act("lead"), project=cast.project, cluster=cluster)
    asked = request_submit(
        actor=act("member"), kind="grant", project=cast.project, payload={"profile": profile.name, "devices": 9}
    )

    for _ in range(2):
        project_close(actor=act("org_admin"), public_id=cast.project.public_id, reason="The study is over.")

    assert Request.objects.for_project(cast.project).get(pk=asked.pk).state == "withdrawn"
    assert Grant.objects.for_project(cast.project).get().state == "closed"
    rows = Deployment.objects.for_project(cast.project)
    assert {row.pk: row.desired for row in rows} == {row.pk: "absent" for row in (*deployments, loose)}
    assert ProjectSpace.objects.for_project(cast.project).get().desired == "absent"
    assert QuotaHold.objects.for_project(cast.project).filter(ended_at=None).count() == 2

    assert Grant.objects.for_project(cast.other_project).get().state == "active"
    assert Deployment.objects.for_project(cast.other_project).get(pk=kept.pk).desired == "present"

    ended = AuditEvent.objects.exclude(action__in=["request.submit", "space.create"])
    assert sorted(ended.values_list("action", flat=True)) == [
        "deployment.delete",
        "deployment.delete",
        "deployment.delete",
        "grant.close",
        "project.close",
        "request.withdraw",
        "space.end",
    ]
    assert set(ended.values_list("project_id", flat=True)) == {cast.project.public_id}


@pytest.mark.parametrize("round_", range(3))
@pytest.mark.django_db(transaction=True)
def test_race_of_closing_against_approving_scaling_and_deleting_leaves_nothing_wanted(round_):
    cast = make_cast()
    cluster, profile = make_cluster(), make_profile()
    grant = make_grant(cast.project, profile, devices=20)
    standing = [make_deployment(grant, cluster, author=cast.member) for _ in range(3)]
    asked = [
        request_submit(
            actor=actor_of(cast.member),
            kind="deployment",
            project=cast.project,
            payload={
                "name": f"model-{number}",
                "profile": profile.name,
                "source": "hf://acme/tiny",
                "source_file": "tiny.gguf",
            },
        )
        for number in range(4)
    ]
    results = all_at_once(
        [
            lambda: project_close(actor=actor_of(cast.org_admin), public_id=cast.project.public_id),
            *[
                lambda request=request: request_decide(
                    actor=actor_of(cast.lead), public_id=request.public_id, verdict="approve"
                )
                for request in asked
            ],
            *[
                lambda row=row: deployment_scale(
                    actor=actor_of(cast.member), public_id=row.public_id, replicas_min=1, replicas_max=3
                )
                for row in standing
            ],
            *[
                lambda: request_submit(
                    actor=actor_of(cast.member),
                    kind="grant",
                    project=cast.project,
                    payload={"profile": profile.name, "devices": 1},
                )
            ]
            * 4,
            lambda: deployment_delete(actor=actor_of(cast.member), public_id=standing[0].public_id),
        ]
    )
    assert not isinstance(results[0], Exception)
    assert set(Deployment.objects.for_project(cast.project).values_list("desired", flat=True)) == {"absent"}
    assert Grant.objects.for_project(cast.project).get().state == "closed"
    assert not Request.objects.for_project(cast.project).filter(state="submitted").exists()
    for space in ProjectSpace.objects.for_project(cast.project):
        assert space.desired == "absent"
