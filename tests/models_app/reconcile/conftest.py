"""A project, a grant and a deployment whose cluster is the real one, and a hand to drive its loop with."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from deploy.local.controlplane_api import Api
from fleet.models import Cluster, Grant, QuotaHold
from models_app.models import AppliedObject, Deployment, Revision, StateChange
from models_app.reconcile.deployments import RECONCILER
from portal.approvals.models import Request
from portal.tenancy.models import Project, unscoped
from portal.work.loop import Report, run_pass
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile
from tests.cluster import eventually
from tests.models_app.engines.specs import image_of

Json = dict[str, Any]


@dataclass
class Scene:
    """One deployment and its cluster. ``api`` acts as the cluster's administrator, who is not Slipway."""

    deployment: Deployment
    api: Api
    namespace: str

    @property
    def name(self) -> str:
        return self.deployment.object_name

    def pass_once(self) -> Report | None:
        return run_pass(RECONCILER, self.deployment.public_id)

    def row(self) -> Deployment:
        with unscoped("test"):
            return Deployment.objects.select_related("project__organization", "cluster", "profile").get(
                pk=self.deployment.pk
            )

    def until(self, *phases: str, within: float = 60) -> Deployment:
        """Pass after pass until the phase is one of ``phases``."""

        def look() -> Deployment | None:
            self.pass_once()
            row = self.row()
            return row if row.phase in phases else None

        found = eventually(look, within=within, what=f"phase {' or '.join(phases)}; is {self.row().phase_message}")
        assert found is not None
        return found

    def change(self, **columns: Any) -> None:
        """A new generation with ``columns``, as a service writes it."""
        with unscoped("test"):
            rows = Deployment.objects.filter(pk=self.deployment.pk)
            rows.update(generation=self.row().generation + 1, **columns)

    def revise(self, **columns: Any) -> None:
        """The next revision, with ``columns``."""
        with unscoped("test"):
            revision = Revision.objects.filter(deployment=self.deployment).order_by("-number").first()
            assert revision is not None
            revision.pk, revision.number = None, revision.number + 1
            for name, value in columns.items():
                setattr(revision, name, value)
            revision.save(force_insert=True)
        self.change(revision=revision.number)

    def path(self, kind: str = "Deployment") -> str:
        group = {
            "Deployment": f"/apis/apps/v1/namespaces/{self.namespace}/deployments",
            "Service": f"/api/v1/namespaces/{self.namespace}/services",
            "HorizontalPodAutoscaler": f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers",
        }[kind]
        return f"{group}/{self.name}"

    def live(self, kind: str = "Deployment") -> Json | None:
        return self.api.get(self.path(kind))

    def pods(self) -> list[Json]:
        return [pod for pod in self.api.items("v1", "Pod") if pod["metadata"]["namespace"] == self.namespace]

    def held(self) -> int:
        """Devices of the open hold; -1 when it has ended."""
        with unscoped("test"):
            hold = QuotaHold.objects.filter(consumer_id=self.deployment.public_id, ended_at=None).first()
        return hold.devices if hold else -1

    def objects(self, *, gone: bool = False) -> list[AppliedObject]:
        with unscoped("test"):
            rows = AppliedObject.objects.filter(deployment=self.deployment, gone_at__isnull=not gone)
            return list(rows.order_by("kind"))

    def timeline(self) -> list[str]:
        with unscoped("test"):
            return list(
                StateChange.objects.filter(deployment=self.deployment).order_by("id").values_list("phase", flat=True)
            )

    def request(self) -> Request:
        with unscoped("test"):
            return Request.objects.get(public_id=self.deployment.approval_id)


@pytest.fixture
def fleet_cluster(db: None) -> Cluster:
    return make_cluster("local", credential="local")


@pytest.fixture
def grant(cast: Cast) -> Grant:
    return make_grant(cast.project, make_profile("h100"), devices=16)


MakeScene = Callable[..., Scene]


@pytest.fixture
def make_scene(
    cast: Cast, grant: Grant, fleet_cluster: Cluster, admin: Api, namespace: str, cluster_credential: str
) -> MakeScene:
    """``make_scene(replicas_min=…)``: a deployment of the cast's project, approved, in a fresh namespace of the cluster."""
    Project.objects.filter(pk=cast.project.pk).update(namespace=namespace)

    def make(**fields: Any) -> Scene:
        with unscoped("test"):
            request = Request.objects.create(
                kind="deployment", project=cast.project, requester=cast.member, title="model", state="approved"
            )
        name = fields.pop("name", f"chat-{secrets.token_hex(3)}")
        row = make_deployment(
            grant,
            fleet_cluster,
            author=cast.member,
            name=name,
            approval_id=request.public_id,
            request_id="click-1",
            configuration={"source_file": "tiny.gguf", "cpu": "1", "memory": "1Gi", "context_length": 512},
            **fields,
        )
        with unscoped("test"):
            Revision.objects.filter(deployment=row).update(image=image_of("llamacpp-cuda"))
            Request.objects.filter(pk=request.pk).update(made_kind="deployment", made_id=row.public_id)
        return Scene(deployment=row, api=admin, namespace=namespace)

    return make
