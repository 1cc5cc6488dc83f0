"""What the cluster itself said of pods, recorded by a plain watch: the flows hold the ledger to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from deploy.local.controlplane_api import Api

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One pod's own account: devices, when it was bound, and the latest finishedAt of its containers."""

    devices: int
    bound_at: datetime
    finished_at: datetime | None

    @property
    def device_us(self) -> int:
        """Device microseconds, exact; only for a pod that says when it ended."""
        assert self.finished_at is not None
        held = self.finished_at - self.bound_at
        return self.devices * ((held.days * 86_400 + held.seconds) * 1_000_000 + held.microseconds)


class Recorder:
    """The newest body of each pod of a namespace, by uid, deletions included."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._bodies: dict[str, Json] = {}
        self._ended = threading.Event()

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                for event in self._api.watch("/api/v1/pods", seconds=300):
                    body = event["object"]
                    if event["type"] in {"ADDED", "MODIFIED", "DELETED"}:
                        self._bodies[body["metadata"]["uid"]] = body
                    if self._ended.is_set():
                        return
            except httpx.HTTPError:
                self._ended.wait(0.2)

    def of(self, deployment: str) -> dict[str, Told]:
        """uid -> what that pod of the deployment told."""
        return {
            uid: told(body)
            for uid, body in self._bodies.items()
            if body["metadata"].get("labels", {}).get("slipway/id") == deployment
        }


def told(body: Json) -> Told:
    """Read straight from the object, apart from the code under test."""
    conditions = {one["type"]: one for one in body["status"].get("conditions", [])}
    finished = [
        datetime.fromisoformat(one["state"]["terminated"]["finishedAt"])
        for one in body["status"].get("containerStatuses", [])
        if "terminated" in one.get("state", {})
    ]
    devices = sum(
        int(count)
        for container in body["spec"]["containers"]
        for name, count in container.get("resources", {}).get("limits", {}).items()
        if name.endswith("/gpu")
    )
    return Told(
        devices=devices,
        bound_at=datetime.fromisoformat(conditions["PodScheduled"]["lastTransitionTime"]),
        finished_at=max(finished) if finished else None,
    )
