"""How the engine agent writes to pods: until it is written, and never to another pod of the same name."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx

from deploy.local.agent_occupant import Occupant

Json = dict[str, Any]
log = logging.getLogger("slipway.agent")


class PodWriter:
    """Patches of a pod and of its status; a pod of that uid that no longer exists is marked gone."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api

    async def annotate(self, occupant: Occupant, annotations: dict[str, str | None]) -> None:
        body = {"metadata": {"uid": occupant.pod["metadata"]["uid"], "annotations": annotations}}
        await self._patch(occupant, "", "application/merge-patch+json", body)

    async def patch_status(self, occupant: Occupant, body: Json) -> None:
        await self._patch(occupant, "/status", "application/strategic-merge-patch+json", body)

    async def _patch(self, occupant: Occupant, below: str, kind: str, body: Json) -> None:
        """Write until it is written; a pod of that uid that no longer exists is gone."""
        meta = occupant.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}{below}"
        wait = 0.1
        while not occupant.gone:
            try:
                response = await self._api.patch(path, headers={"Content-Type": kind}, content=json.dumps(body))
            except httpx.HTTPError as error:
                log.warning("%s: %s; again in %.1f s", occupant.name, type(error).__name__, wait)
            else:
                if response.status_code == 404 or (response.status_code == 409 and "uid" in response.text):
                    occupant.lose()
                    return
                if response.status_code < 300:
                    return
                log.warning("%s: %s %s", occupant.name, response.status_code, response.text[:300])
                if response.status_code in {400, 422}:
                    return
            await asyncio.sleep(wait)
            wait = min(wait * 2, 5)
