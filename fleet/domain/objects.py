"""What is kept of any other watched object: its owner, its metadata, its raw status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.domain.pods import clean, mapping, text, version_of
from fleet.domain.stamps import owner_of

_METADATA_KEYS = (
    "name",
    "namespace",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "labels",
    "ownerReferences",
)
_ANNOTATION_PREFIXES = ("slipway/", "deployment.kubernetes.io/", "flexinfer.ai/")


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """``owner`` is (slipway/kind, slipway/id) as its labels say, ("", "") when it does not carry all of them."""

    uid: str
    api_version: str
    kind: str
    namespace: str
    name: str
    version: int
    owner: tuple[str, str]
    metadata: Mapping[str, Any]
    status: Mapping[str, Any]


def object_facts(raw: Mapping[str, Any], *, api_version: str, kind: str) -> ObjectFacts | None:
    """Read an object of the watched kind; None when it has no uid."""
    metadata = mapping(raw.get("metadata"))
    uid = text(metadata.get("uid"))
    if not uid or len(uid) > 64:
        return None
    labels = mapping(metadata.get("labels"))
    owner = owner_of({"metadata": {"labels": labels}})
    kept = {key: metadata[key] for key in _METADATA_KEYS if key in metadata}
    kept["annotations"] = {
        key: value
        for key, value in mapping(metadata.get("annotations")).items()
        if text(key).startswith(_ANNOTATION_PREFIXES) and isinstance(value, str)
    }
    return ObjectFacts(
        uid=uid,
        api_version=api_version,
        kind=kind,
        namespace=text(metadata.get("namespace"))[:63],
        name=text(metadata.get("name"))[:253],
        version=version_of(metadata),
        owner=(owner.kind[:40], owner.id[:63]) if owner else ("", ""),
        metadata=clean(kept),
        status=clean(mapping(raw.get("status"))),
    )
