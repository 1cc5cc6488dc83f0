"""The namespace of a project: derived once, stored, short enough for what hangs on it (contract D1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from portal.kernel.names import shortened

NAMESPACE_MAX = 32
"""KServe derives ``<name>-predictor-<namespace>`` within 63: this leaves 20 characters to a model's name."""

_MARK = "sw-"


def namespace_candidates(organization_slug: str, project_slug: str) -> Iterator[str]:
    """Names to try in order, each a DNS label of at most 32 characters.

    The mark keeps out of ``kube-system`` and of what a cluster has already; the hashed ones are for the rare pair of
    slugs that join to the same text (``a-b`` + ``c``, ``a`` + ``b-c``).
    """
    joined = f"{_MARK}{organization_slug}-{project_slug}"
    yield shortened(joined, NAMESPACE_MAX)
    for attempt in range(4):
        digest = hashlib.sha256(f"{organization_slug}/{project_slug}/{attempt}".encode()).hexdigest()[:8]
        yield f"{joined[: NAMESPACE_MAX - 9].rstrip('-')}-{digest}"
