"""The request kind ``deployment``: what is asked, what it would mean, and what approving or taking back does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fleet.models import Cluster, CompatibilityCell, GpuProfile, Grant
from fleet.selectors.capacity import profile_capacity
from fleet.selectors.grants import grants_with_use
from fleet.selectors.profiles import cluster_list, profile_list
from models_app.domain.fit import Cell, FitAnswer, FitCheck, Shape, compatibility, device_count, vram
from models_app.domain.payload import DeploymentAsk, parsed_ask
from models_app.domain.quota import GrantRoom, capacity_check, grant_check, hours_text
from models_app.engines.registry import ENGINES, engine_of
from models_app.selectors.deployments import name_taken
from models_app.selectors.specs import CONSUMER_KIND, spec_of_ask
from models_app.services.parts.deployments import deployment_create, deployment_stop
from portal.approvals.domain.previews import Check, CheckVerdict, Preview
from portal.approvals.kinds import Made, Payload, RequestKind
from portal.approvals.models import Request
from portal.audit.domain.actors import Actor
from portal.kernel.errors import Conflict, InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import Project

_VERDICTS = {
    FitAnswer.FITS: CheckVerdict.OK,
    FitAnswer.EXPERIMENTAL: CheckVerdict.WARN,
    FitAnswer.REFUSED: CheckVerdict.REFUSE,
    FitAnswer.UNKNOWN: CheckVerdict.UNKNOWN,
}


def clean(payload: Mapping[str, object], *, project: Project) -> Payload:
    """The payload typed, complete and with the names it refers to resolved; InvalidInput names each wrong field."""
    ask, problems = parsed_ask(payload)
    if ask is None:
        raise InvalidInput("The request is not possible as it stands.", fields=problems)
    profile = _profile(ask.profile)
    cluster = _cluster(ask.cluster)
    if ask.engine not in ENGINES:
        raise InvalidInput("No such engine.", fields={"engine": [f"One of: {', '.join(ENGINES)}."]})
    engine = engine_of(ask.engine)
    if ask.backend not in engine.backends:
        known = ", ".join(engine.backends)
        raise InvalidInput("No such backend.", fields={"backend": [f"{engine.label} runs: {known}."]})
    spec = spec_of_ask(ask, project=project, profile=profile, cell=None)
    fields: dict[str, list[str]] = {}
    for problem in engine.spec_problems(spec):
        fields.setdefault(problem.field, []).append(problem.text)
    if fields:
        raise InvalidInput("The request is not possible as it stands.", fields=fields)
    return {**ask.as_payload(), "profile": profile.name, "cluster": cluster.name}


def preview(payload: Payload, *, project: Project, now: datetime) -> Preview:
    """Name, compatibility, devices, VRAM, grant, capacity; and what it would cost. Reads only."""
    ask = _ask(payload)
    profile = _profile(ask.profile)
    capacity = profile_capacity(profile_ids=[profile.pk]).get(profile.pk)
    largest = capacity.largest_node if capacity is not None and capacity.nodes else None
    shape = Shape(profile_title=profile.title, device_vram_bytes=profile.vram_bytes, largest_node=largest)
    room = next(
        (
            GrantRoom(use.grant.devices, use.free)
            for use in grants_with_use(project=project)
            if _runs(use.grant, profile, now)
        ),
        None,
    )
    fits = [
        compatibility(_cells(profile), profile_title=profile.title, backend=ask.backend, model_format=ask.model_format),
        device_count(shape, devices=ask.devices_per_replica),
        vram(shape, devices=ask.devices_per_replica, needed_bytes=ask.vram_bytes),
        grant_check(room, devices=ask.devices, profile_title=profile.title),
        capacity_check(
            free=capacity.free if capacity else 0,
            nodes=capacity.nodes if capacity else 0,
            devices=ask.devices_per_replica,
            replicas=ask.replicas_min,
        ),
    ]
    return Preview(
        checks=(_name_check(project, ask), *(_check(fit) for fit in fits)),
        devices=ask.devices,
        facts=_facts(ask, profile, free=capacity.free if capacity and capacity.nodes else None),
    )


def fulfil(*, request: Request, actor: Actor) -> Made:
    """Declare it and hold its quota; its loop says when it was seen ready once."""
    ask = _ask(request.payload)
    profile = _profile(ask.profile)
    fit = compatibility(_cells(profile), profile_title=profile.title, backend=ask.backend, model_format=ask.model_format)
    cell = _cell(profile, ask)
    if cell is None or fit.answer is FitAnswer.REFUSED:
        raise Conflict(f"{fit.text} The matrix changed since this was asked: deny it, and ask anew.", code="incompatible")
    deployment = deployment_create(
        actor=actor,
        project=request.project,
        ask=ask,
        profile=profile,
        cluster=_cluster(ask.cluster),
        cell=cell,
        author=request.requester,
        approval_id=request.public_id,
    )
    return Made(kind=CONSUMER_KIND, id=deployment.public_id)


def revoke(*, request: Request, actor: Actor, reason: str) -> None:
    """Stop what approval had declared, in whatever state it is (C37)."""
    if request.made_id:
        deployment_stop(actor=actor, public_id=request.made_id, reason=reason)


def _title(payload: Payload) -> str:
    return f"Model {payload['name']}: {payload['replicas_max']} × {payload['devices_per_replica']} {payload['profile']}"


DEPLOYMENT = RequestKind(
    name="deployment",
    label="Model deployment",
    decide_permission=Permission.REQUEST_DECIDE_DEPLOYMENT,
    title=_title,
    clean=clean,
    preview=preview,
    fulfil=fulfil,
    revoke=revoke,
)


def _ask(payload: Mapping[str, object]) -> DeploymentAsk:
    ask, problems = parsed_ask(payload)
    if ask is None:
        raise InvalidInput("The request is not possible as it stands.", fields=problems)
    return ask


def _profile(ref: str) -> GpuProfile:
    profiles = profile_list(enabled_only=True)
    profile = next((item for item in profiles if ref in (item.name, item.public_id)), None)
    if profile is None:
        known = ", ".join(item.name for item in profiles) or "none yet"
        raise InvalidInput("No such GPU profile.", fields={"profile": [f"“{ref}” is not known; there are: {known}."]})
    return profile


def _cluster(ref: str) -> Cluster:
    clusters = list(cluster_list(enabled_only=True))
    if not ref and len(clusters) == 1:
        return clusters[0]
    cluster = next((item for item in clusters if ref in (item.name, item.public_id)), None)
    if cluster is None:
        known = ", ".join(item.name for item in clusters) or "none yet"
        text = f"“{ref}” is not known; there are: {known}." if ref else f"Choose one of: {known}."
        raise InvalidInput("No such cluster.", fields={"cluster": [text]})
    return cluster


def _cell(profile: GpuProfile, ask: DeploymentAsk) -> CompatibilityCell | None:
    pair = (ask.backend, ask.model_format)
    return next((cell for cell in profile.cells.all() if (cell.backend, cell.model_format) == pair), None)


def _cells(profile: GpuProfile) -> tuple[Cell, ...]:
    return tuple(
        Cell(cell.backend, cell.model_format, cell.support, cell.reason, cell.image) for cell in profile.cells.all()
    )


def _runs(grant: Grant, profile: GpuProfile, now: datetime) -> bool:
    return grant.profile_id == profile.pk and grant.starts_at <= now and (grant.ends_at is None or now < grant.ends_at)


def _name_check(project: Project, ask: DeploymentAsk) -> Check:
    taken = name_taken(project=project, name=ask.name)
    if taken is not None:
        return Check("name", CheckVerdict.WARN if taken.passing else CheckVerdict.REFUSE, taken.text, "name")
    return Check("name", CheckVerdict.OK, f"API callers will say model “{ask.name}”.", "name")


def _check(fit: FitCheck) -> Check:
    return Check(fit.name, _VERDICTS[fit.answer], fit.text, fit.field)


def _facts(ask: DeploymentAsk, profile: GpuProfile, *, free: int | None) -> tuple[tuple[str, str], ...]:
    return (
        ("Devices held from approval on", f"{ask.devices} × {profile.title}"),
        ("Devices free in the fleet now", "unknown" if free is None else str(free)),
        (
            "GPU-hours a month",
            hours_text(devices_low=ask.devices_per_replica * ask.replicas_min, devices_high=ask.devices),
        ),
        ("Cost a month", "unknown: no rate set"),
    )
