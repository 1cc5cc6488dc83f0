"""An engine's spec from rows: from a revision for the loop, from an ask for its preview."""

from __future__ import annotations

from fleet.domain.stamps import MODEL_ID, Owner
from fleet.models import CompatibilityCell, GpuProfile
from models_app.domain.names import derived_object_name
from models_app.domain.payload import DeploymentAsk
from models_app.domain.replicas import ReplicaRange, ReplicasPlan
from models_app.domain.sources import model_id_of
from models_app.engines.base import EngineSpec
from models_app.engines.registry import engine_of
from models_app.models import Deployment, Revision
from portal.kernel.quantities import parse
from portal.tenancy.models import Project

CONSUMER_KIND = "deployment"
"""How quota holds, cluster labels and ledger rows name a deployment."""


def owner_stamp(deployment: Deployment) -> Owner:
    """Who owns its objects, for labels."""
    return Owner(kind=CONSUMER_KIND, id=deployment.public_id, project=deployment.project.public_id)


def spec_of_revision(deployment: Deployment, revision: Revision, plan: ReplicasPlan) -> EngineSpec:
    """The spec of ``deployment`` at ``revision``; reads its project, and what the revision kept of the profile."""
    profile, configuration = revision.profile_snapshot, revision.configuration
    vram = configuration.get("vram", "")
    return EngineSpec(
        served_name=deployment.name,
        object_name=deployment.object_name,
        namespace=deployment.project.namespace,
        labels=owner_stamp(deployment).labels(),
        model_id=model_id_of(revision.artifact_source),
        image=revision.image,
        backend=revision.backend,
        model_format=revision.model_format,
        source=revision.artifact_source,
        source_revision=revision.artifact_revision,
        source_file=configuration.get("source_file", ""),
        vendor=profile.get("vendor", revision.profile.vendor),
        resource_name=profile.get("resource_name", revision.profile.resource_name),
        devices=deployment.devices_per_replica,
        replicas=ReplicaRange(deployment.replicas_min, deployment.replicas_max),
        replicas_plan=plan,
        node_selector=profile.get("node_selector", revision.profile.node_selector),
        tolerations=profile.get("tolerations", revision.profile.tolerations),
        environment=profile.get("environment", {}),
        cpu=configuration.get("cpu", "4"),
        memory=configuration.get("memory", "16Gi"),
        vram_bytes=int(parse(vram)) if vram else None,
        context_length=configuration.get("context_length"),
        arguments=tuple(configuration.get("arguments", ())),
        model_annotation=MODEL_ID,
    )


def spec_of_ask(ask: DeploymentAsk, *, project: Project, profile: GpuProfile, cell: CompatibilityCell | None) -> EngineSpec:
    """The spec that approving ``ask`` would give, under a stand-in id: for the rules, not for applying."""
    engine = engine_of(ask.engine)
    stand_in = "dep_00000000000000000000"
    return EngineSpec(
        served_name=ask.name,
        object_name=derived_object_name(ask.name, stand_in, limit=engine.name_limit(project.namespace)),
        namespace=project.namespace,
        labels=Owner(kind=CONSUMER_KIND, id=stand_in, project=project.public_id).labels(),
        model_id=model_id_of(ask.source),
        image=ask.image or (cell.image if cell else ""),
        backend=ask.backend,
        model_format=ask.model_format,
        source=ask.source,
        source_revision=ask.source_revision,
        source_file=ask.source_file,
        vendor=profile.vendor,
        resource_name=profile.resource_name,
        devices=ask.devices_per_replica,
        replicas=ReplicaRange(ask.replicas_min, ask.replicas_max),
        replicas_plan=ReplicasPlan(ask.replicas_min),
        node_selector=profile.node_selector,
        tolerations=profile.tolerations,
        environment=cell.environment if cell else {},
        cpu=ask.cpu,
        memory=ask.memory,
        vram_bytes=ask.vram_bytes,
        context_length=ask.context_length,
        arguments=ask.arguments,
        model_annotation=MODEL_ID,
    )
