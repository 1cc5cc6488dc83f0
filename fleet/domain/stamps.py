"""What Slipway writes on every object it applies and on pod templates: who owns it, and which version it is (D4, D5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIELD_MANAGER = "slipway"

MANAGED = "slipway/managed"
KIND = "slipway/kind"
ID = "slipway/id"
PROJECT = "slipway/project"
GENERATION = "slipway/generation"
SPEC_HASH = "slipway/spec-hash"
REQUEST_ID = "slipway/request-id"
MODEL_ID = "slipway/model-id"


@dataclass(frozen=True, slots=True)
class Owner:
    """The row behind an object: ``kind`` (``deployment``, ``space``), its public id and its project's."""

    kind: str
    id: str
    project: str

    def labels(self) -> dict[str, str]:
        return {MANAGED: "true", KIND: self.kind, ID: self.id, PROJECT: self.project}


def spec_hash(manifest: Mapping[str, Any]) -> str:
    """32 hex digits of the SHA-256 of the manifest without Slipway's own annotations: equal meaning to us, equal hash."""
    return hashlib.sha256(json.dumps(_unstamped(manifest), sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:32]


def stamped(manifest: Mapping[str, Any], *, owner: Owner, generation: int, request_id: str = "") -> dict[str, Any]:
    """A copy with the owner's labels and the annotations generation, spec hash and (when known) request id.

    The renderer itself stamps pod templates, with ``owner.labels()``: what goes there restarts pods when it changes.
    """
    meta = dict(manifest["metadata"])
    meta["labels"] = {**meta.get("labels", {}), **owner.labels()}
    labelled = {**manifest, "metadata": meta}
    stamps = {GENERATION: str(generation), SPEC_HASH: spec_hash(labelled)}
    if request_id:
        stamps[REQUEST_ID] = request_id
    meta["annotations"] = {**meta.get("annotations", {}), **stamps}
    return labelled


def owner_of(live: Mapping[str, Any]) -> Owner | None:
    """Whose object it says it is; None when it does not carry all of Slipway's labels."""
    labels = live.get("metadata", {}).get("labels") or {}
    if labels.get(MANAGED) != "true" or not all(labels.get(key) for key in (KIND, ID, PROJECT)):
        return None
    return Owner(labels[KIND], labels[ID], labels[PROJECT])


def generation_of(live: Mapping[str, Any]) -> int | None:
    """The generation stamped on it; None when there is none that can be read."""
    text = _annotations(live).get(GENERATION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def hash_of(live: Mapping[str, Any]) -> str:
    """The spec hash stamped on it, or ""."""
    return str(_annotations(live).get(SPEC_HASH, ""))


def is_newer(live: Mapping[str, Any], generation: int) -> bool:
    """Whether a pass of a later generation has been there: this pass is stale, and must not apply (D4)."""
    stamp = generation_of(live)
    return stamp is not None and stamp > generation


def _annotations(live: Mapping[str, Any]) -> Mapping[str, Any]:
    return live.get("metadata", {}).get("annotations") or {}


def _unstamped(manifest: Mapping[str, Any]) -> dict[str, Any]:
    meta = dict(manifest.get("metadata", {}))
    own = {GENERATION, SPEC_HASH, REQUEST_ID}
    meta["annotations"] = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in own}
    return {**manifest, "metadata": meta}
