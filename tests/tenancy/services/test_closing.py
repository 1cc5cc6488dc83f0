"""Closing a project ends what it has on every floor, and frees nothing before its pods are proven gone (Q1)."""

from django.db import transaction

from fleet.models import Grant, ProjectSpace, QuotaHold
from fleet.services.parts.spaces import space_ensure
from models_app.models import Deployment
from portal.approvals.models import Request
from portal.approvals.services.requests import request_submit
from portal.audit.models import AuditEvent
from portal.tenancy.services.organizations import project_close
from tests.cast import make_cluster, make_deployment, make_grant, make_profile


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
