"""Each main page with 10 and with 10,000 deployments: queries, and server time of 60 warm loads.

In process, through every middleware, on the embedded Postgres: what a page costs the server, without the network.
"""

from __future__ import annotations

import importlib
import sys
import time
from dataclasses import dataclass

import django

importlib.import_module("tests.stack")
django.setup()

from django.conf import settings  # noqa: E402  (settings exist only after the services are up)
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext, setup_databases, setup_test_environment, teardown_databases  # noqa: E402

from bench.figures import Figure, percentile, report  # noqa: E402
from models_app.models import Deployment, Revision  # noqa: E402
from tests.cast import IMAGE, Cast, make_cast, make_cluster, make_deployment, make_grant, make_profile  # noqa: E402

_LOADS = 60
_FEW, _MANY = 10, 10_000
_PHASES = ("declared", "admitted", "loading", "ready", "ready", "ready", "idle", "degraded", "failed", "deleting")


@dataclass(frozen=True, slots=True)
class World:
    """What the pages show: one project that holds all of it."""

    cast: Cast
    template: Deployment
    revision: Revision


def main() -> None:
    """Print the slowest page's p95 and the most queries, and every page's own figures."""
    setup_test_environment()
    settings.ALLOWED_HOSTS = ["testserver"]
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        world = _world()
        _grow(world, 1, _FEW)
        few = {name: _measured(world, address) for name, address in _pages(world).items()}
        _grow(world, _FEW, _MANY)
        many = {name: _measured(world, address) for name, address in _pages(world).items()}
    finally:
        teardown_databases(databases, verbosity=0)
    rows = {
        name: {
            "queries_few": few[name][0],
            "queries_many": many[name][0],
            "p95_ms_few": round(percentile(few[name][1], 0.95), 1),
            "p95_ms_many": round(percentile(many[name][1], 0.95), 1),
        }
        for name in few
    }
    same = all(row["queries_few"] == row["queries_many"] for row in rows.values())
    figures = [
        Figure("slowest_page_p95", max(row["p95_ms_many"] for row in rows.values()), "ms"),
        Figure("most_queries", max(row["queries_many"] for row in rows.values()), "queries"),
        Figure("same_queries_with_10_and_10000", int(same), "yes=1"),
    ]
    report(figures, {"deployments": [_FEW, _MANY], "loads": _LOADS, "pages": rows})


def _world() -> World:
    cast = make_cast()
    grant = make_grant(cast.project, make_profile(), devices=20_000)
    deployment = make_deployment(grant, make_cluster(), author=cast.member, phase="ready")
    with_revision = Revision.objects.for_project(cast.project).get(deployment=deployment)
    return World(cast=cast, template=deployment, revision=with_revision)


def _grow(world: World, have: int, want: int) -> None:
    """Deployments ``have`` to ``want``, in every phase, each with its revision."""
    like = world.template
    made = Deployment.objects.bulk_create(
        Deployment(
            project=like.project,
            cluster=like.cluster,
            grant=like.grant,
            profile=like.profile,
            name=f"bench-{number}",
            object_name=f"bench-{number}",
            engine="plain",
            phase=_PHASES[number % len(_PHASES)],
        )
        for number in range(have, want)
    )
    Revision.objects.bulk_create(
        Revision(
            deployment=deployment,
            project=like.project,
            number=1,
            image=IMAGE,
            backend="llamacpp",
            artifact_source="hf://acme/tiny",
            model_format="gguf",
            profile=like.profile,
            profile_version=1,
            created_by=world.cast.member,
        )
        for deployment in made
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"slipway: {want} deployments", file=sys.stderr)


def _pages(world: World) -> dict[str, str]:
    project = world.cast.project.public_id
    return {
        "home": "/",
        "ask": f"/projects/{project}/ask/",
        "requests": "/requests/",
        "inbox": "/inbox/",
        "deployments": "/deployments/",
        "deployment": f"/deployments/{world.template.public_id}/",
        "project": f"/projects/{project}/",
        "usage": f"/projects/{project}/usage/",
        "keys": f"/projects/{project}/keys/",
        "fleet": "/fleet/",
    }


def _measured(world: World, address: str) -> tuple[int, list[float]]:
    """(queries of one load, milliseconds of each of the warm loads)."""
    client = Client()
    client.force_login(world.cast.lead)
    for _warm in range(3):
        _load(client, address)
    with CaptureQueriesContext(connection) as seen:
        _load(client, address)
    queries = len(seen)  # counted now: the next request starts the log anew
    times = []
    for _number in range(_LOADS):
        began = time.perf_counter()
        _load(client, address)
        times.append((time.perf_counter() - began) * 1000)
    return queries, times


def _load(client: Client, address: str) -> None:
    answer = client.get(address)
    if answer.status_code != 200:
        raise RuntimeError(f"{address} answered {answer.status_code}")


if __name__ == "__main__":
    main()
