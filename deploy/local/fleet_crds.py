"""Custom resource definitions for tests: upstream's where ../shared/crds is there, else the project's own cut-down ones."""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from deploy.local.controlplane_api import Api, Json
from deploy.local.state import CHECKOUT

UPSTREAM = CHECKOUT.parent / "shared" / "crds"
OWN = Path(__file__).with_name("crds")
_WITHIN = 20.0


def definition(project: str, name: str) -> Path:
    """The file ``name`` of ``project``, for example ``flexinfer``, ``ai.flexinfer_models.yaml``."""
    upstream = UPSTREAM / project / name
    return upstream if upstream.exists() else OWN / name


def install(api: Api, path: Path) -> list[str]:
    """Apply the definitions in ``path`` and wait until the API server serves them; their names.

    Raises TimeoutError when one is not served in time.
    """
    definitions: list[Json] = [one for one in yaml.safe_load_all(path.read_text()) if one]
    names = [str(one["metadata"]["name"]) for one in definitions]
    for one in definitions:
        api.apply(one)
    for one in definitions:
        spec = one["spec"]
        version = next(version["name"] for version in spec["versions"] if version["served"])
        # 404 until it is served, 429 while its storage is being made.
        _wait(api, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}", until={200})
    return names


def remove(api: Api, names: list[str]) -> None:
    """Remove definitions and every object of theirs; returns when they are gone."""
    for name in names:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        api.delete(path)
        _wait(api, path, until={404})


def _wait(api: Api, path: str, *, until: set[int]) -> None:
    deadline = time.monotonic() + _WITHIN
    while (status := api.http.get(path).status_code) not in until:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} still answers {status} after {_WITHIN:.0f} s")
        time.sleep(0.05)
