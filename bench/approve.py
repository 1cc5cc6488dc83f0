"""From the approve click to the object in the API server, 200 approvals one after another.

The namespace stands and caches are warm. The clock starts when the approver's POST is sent and stops when a plain watch
sees the Deployment. Beside it, in the same run: the bare cost of the same server-side applies by a plain client. Etcd and
Postgres run without fsync, as in the tests.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time

import httpx

from bench.figures import Figure, percentile, report
from bench.running import running
from deploy.local.controlplane_api import Api
from deploy.local.stack import Stack
from tests.flows.rest import Rest

_WARM = 10
_COUNTED = 200
_APPROVER = "approver@north-lab.example"
_RESEARCHER = "researcher@north-lab.example"


def main() -> None:
    """Print p50 and p95 of both, and the ratio of the p95s."""
    with running() as (stack, fleet):
        api = fleet.control_plane.api
        researcher, approver = Rest(stack, _RESEARCHER), Rest(stack, _APPROVER)
        project = researcher.project("speech")
        _widen_grant(researcher, approver, project)
        seen = _watch(api)
        applied = [_approve_one(researcher, approver, project, number, seen) for number in range(_WARM + _COUNTED)][_WARM:]
        bare = _bare(stack, api)
    figures = [
        Figure("approve_to_applied_p50", round(percentile(applied, 0.50), 1), "ms"),
        Figure("approve_to_applied_p95", round(percentile(applied, 0.95), 1), "ms"),
        Figure("bare_apply_p50", round(percentile(bare, 0.50), 1), "ms"),
        Figure("bare_apply_p95", round(percentile(bare, 0.95), 1), "ms"),
        Figure("approve_to_bare_p95", round(percentile(applied, 0.95) / percentile(bare, 0.95), 2), "ratio"),
    ]
    report(figures, {"approvals": len(applied), "etcd_fsync": False, "postgres_fsync": False})


def _widen_grant(researcher: Rest, approver: Rest, project: str) -> None:
    """Room for every approval: what is measured is the way to the cluster, not the wait for devices."""
    payload = {"profile": "h100-80gb", "devices": 1000}
    asked = researcher.post("requests/", {"project": project, "kind": "grant", "payload": payload, "justification": "bench"})
    approver.post(f"requests/{asked['id']}/decide/", {"verdict": "approve"})


def _watch(api: Api) -> queue.Queue[tuple[str, float]]:
    """(deployment's public id, instant seen) of every Deployment of ours as the API server has it."""
    seen: queue.Queue[tuple[str, float]] = queue.Queue()

    def follow() -> None:
        # Ends with the API server; a watch that ends early shows as a wait for an object that nobody reports.
        with contextlib.suppress(httpx.HTTPError):
            for event in api.watch("/apis/apps/v1/deployments", seconds=3600):
                if event["type"] == "ADDED":
                    labels = event["object"]["metadata"].get("labels", {})
                    seen.put((labels.get("slipway/id", ""), time.perf_counter()))

    threading.Thread(target=follow, daemon=True).start()
    return seen


def _approve_one(
    researcher: Rest,
    approver: Rest,
    project: str,
    number: int,
    seen: queue.Queue[tuple[str, float]],
) -> float:
    """Milliseconds from the click to the object."""
    payload = {
        "name": f"bench-{number}",
        "profile": "h100-80gb",
        "source": "hf://north-lab/tiny-chat",
        "source_file": "tiny.gguf",
        "replicas_min": 1,
        "replicas_max": 1,
    }
    asked = researcher.post("requests/", {"project": project, "kind": "deployment", "payload": payload})
    began = time.perf_counter()
    made = approver.post(f"requests/{asked['id']}/decide/", {"verdict": "approve"})["made_id"]
    while True:
        name, at = seen.get(timeout=60)
        if name == made:
            break
    return (at - began) * 1000


def _bare(stack: Stack, api: Api) -> list[float]:
    """Milliseconds of one server-side apply of a like Deployment and Service, by a plain client, each a new name."""
    namespace = "bench-bare"
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    results = []
    for number in range(_WARM + _COUNTED):
        labels = {"app": f"bare-{number}"}
        meta = {"name": f"bare-{number}", "namespace": namespace}
        container = {
            "name": "server",
            "image": "registry.invalid/bare@sha256:" + "0" * 64,
            "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi"}},
        }
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        }
        began = time.perf_counter()
        api.apply(deployment)
        api.apply(service)
        results.append((time.perf_counter() - began) * 1000)
    return results[_WARM:]


if __name__ == "__main__":
    main()
