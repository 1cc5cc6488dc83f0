"""Loads the demo (deploy/local/demo.yaml) into an empty database, through the services everybody else uses.

``python -m deploy.local.demo FILE --password-file FILE``; a database that has an organization already is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import django
import yaml

from portal.settings.environment import use_settings

use_settings("portal.settings.web")
django.setup()

from fleet.services.clusters import cluster_create  # noqa: E402  (models exist only after setup)
from fleet.services.profiles import cell_set, profile_create  # noqa: E402
from portal.approvals.domain.states import Verdict  # noqa: E402
from portal.approvals.services.decisions import request_decide  # noqa: E402
from portal.approvals.services.requests import request_submit  # noqa: E402
from portal.audit.domain.actors import Actor, Channel  # noqa: E402
from portal.tenancy.models import Organization, Project, User  # noqa: E402
from portal.tenancy.selectors.people import actor_for  # noqa: E402
from portal.tenancy.services.memberships import membership_set, organization_membership_set  # noqa: E402
from portal.tenancy.services.organizations import organization_create, project_create  # noqa: E402
from portal.tenancy.services.people import user_create  # noqa: E402

_GIB = 2**30
_LOADER = Actor.service("demo", channel=Channel.COMMAND)


def pinned(image: str) -> str:
    """``image`` with the SHA-256 of its own name as digest: nothing serves registry.invalid, so any stable one does."""
    return f"{image}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def load(demo: dict[str, Any], *, password: str) -> None:
    """People, projects, the cluster, profiles with their matrix, and grants: asked for and decided by the people named."""
    people = {person["email"]: _person(person, password) for person in demo["people"]}
    organization = organization_create(actor=_LOADER, **demo["organization"])
    for email in demo["organization_admins"]:
        organization_membership_set(actor=_LOADER, organization=organization, email=email)
    projects = {spec["slug"]: _project(spec, organization) for spec in demo["projects"]}
    cluster_create(actor=_LOADER, **demo["cluster"])
    for spec in demo["profiles"]:
        _profile(spec)
    decider = actor_for(people[demo["granted_by"]], Channel.COMMAND)
    for spec in demo["grants"]:
        terms = {name: value for name, value in spec.items() if name not in {"project", "asked_by"}}
        request = request_submit(
            actor=actor_for(people[spec["asked_by"]], Channel.COMMAND),
            kind="grant",
            project=projects[spec["project"]],
            payload=terms,
            justification="Loaded with the demo.",
        )
        request_decide(actor=decider, public_id=request.public_id, verdict=Verdict.APPROVE, reason="Loaded with the demo.")


def _person(spec: dict[str, Any], password: str) -> User:
    return user_create(actor=_LOADER, password=password, **spec)


def _project(spec: dict[str, Any], organization: Organization) -> Project:
    project = project_create(
        actor=_LOADER, organization=organization, name=spec["name"], slug=spec["slug"], time_zone=spec["time_zone"]
    )
    for email, role in spec["members"].items():
        membership_set(actor=_LOADER, project=project, email=email, role=role)
    return project


def _profile(spec: dict[str, Any]) -> None:
    fields = {name: value for name, value in spec.items() if name not in {"cells", "vram_gib"}}
    profile = profile_create(actor=_LOADER, vram_bytes=spec["vram_gib"] * _GIB, **fields)
    for cell in spec["cells"]:
        image = {"image": pinned(cell["image"])} if "image" in cell else {}
        cell_set(actor=_LOADER, profile_public_id=profile.public_id, **{**cell, **image})


def main() -> None:
    """Load once; a second call says so and changes nothing."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local.demo")
    parser.add_argument("file", type=Path)
    parser.add_argument("--password-file", type=Path, required=True, help="the password every demo person signs in with")
    options = parser.parse_args()
    if Organization.objects.exists():
        print("there is data already: the demo is not loaded again")
        return
    load(yaml.safe_load(options.file.read_text()), password=options.password_file.read_text().strip())


if __name__ == "__main__":
    main()
