"""One request id from the click to the object in the real cluster: answer, log lines, audit rows, row, annotation."""

from __future__ import annotations

import pytest

from deploy.local.controlplane_api import Api as ClusterApi
from fleet.reconcile.spaces import RECONCILER as SPACES
from models_app.models import Deployment
from models_app.reconcile.deployments import RECONCILER as DEPLOYMENTS
from portal.audit.models import AuditEvent
from portal.tenancy.models import unscoped
from portal.work.loop import run_pass
from tests.api.conftest import Api
from tests.api.test_operations import log_lines  # noqa: F401 - a fixture
from tests.cast import Cast, make_cluster, make_grant, make_profile
from tests.cluster import eventually
from tests.table.world import deployment_payload

CLICK = "click-approve-0001"


@pytest.mark.cluster
@pytest.mark.django_db
def test_one_id_from_click_to_cluster_object(
    cast: Cast,
    api: Api,
    admin: ClusterApi,
    cluster_credential: str,
    log_lines: object,  # noqa: F811
) -> None:
    make_cluster("local", credential=cluster_credential)
    make_grant(cast.project, make_profile("h100"), devices=8)
    body = {"kind": "deployment", "project": cast.project.public_id, "payload": deployment_payload("traced")}
    asked = api("member").post("/api/v1/requests/", body, HTTP_X_REQUEST_ID="click-ask-00001").json()
    decided = api("lead").post(f"/api/v1/requests/{asked['id']}/decide/", {"verdict": "approve"}, HTTP_X_REQUEST_ID=CLICK)
    assert decided.status_code == 200, decided.json()
    assert decided.headers["X-Request-ID"] == CLICK

    with unscoped("test"):
        row = Deployment.objects.get(public_id=decided.json()["made_id"])
    path = f"/apis/apps/v1/namespaces/{cast.project.namespace}/deployments/{row.object_name}"

    def applied() -> dict[str, object] | None:
        run_pass(SPACES)
        run_pass(DEPLOYMENTS, row.public_id)
        return admin.get(path)

    live = eventually(applied, within=60, what="the object is in the cluster")
    assert live["metadata"]["annotations"]["slipway/request-id"] == CLICK
    assert AuditEvent.objects.filter(request_id=CLICK, object_kind="deployment", object_id=row.public_id).exists()
    assert AuditEvent.objects.filter(request_id=CLICK, action="request.approve").exists()
    lines = [line for line in log_lines() if line.get("request_id") == CLICK]  # type: ignore[operator]
    assert any(line["message"] == "request" for line in lines), "the web process's line"
    assert any(line.get("public_id") == row.public_id for line in lines), "the loop's lines"
