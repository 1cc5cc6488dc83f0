"""Credential name -> open connection, one per process and version of the kubeconfig file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from fleet.cluster.kube import KubeCluster
from fleet.cluster.port import ClusterPort, Unreachable

_lock = threading.Lock()
_open: dict[str, tuple[int, KubeCluster]] = {}
_placed: dict[str, ClusterPort] = {}


def connect(credential: str) -> ClusterPort:
    """The cluster behind ``<CLUSTER_CREDENTIALS_DIR>/<credential>.kubeconfig``; the file is read again when it changed.

    Unreachable when there is no such file yet: the cluster is not known to be without anything (D3).
    """
    if credential in _placed:
        return _placed[credential]
    path = Path(settings.CLUSTER_CREDENTIALS_DIR) / f"{credential}.kubeconfig"
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise Unreachable(f"no kubeconfig for {credential!r} in the credentials folder yet") from error
    with _lock:
        known = _open.get(credential)
        if known is None or known[0] != stamp:
            known = (stamp, KubeCluster(path))
            _open[credential] = known
        return known[1]


@contextmanager
def placed(credential: str, cluster: ClusterPort) -> Iterator[None]:
    """Within the block, ``connect(credential)`` answers ``cluster``: a connection opened elsewhere, or a test's fake."""
    before = _placed.get(credential)
    _placed[credential] = cluster
    try:
        yield
    finally:
        if before is None:
            del _placed[credential]
        else:
            _placed[credential] = before
