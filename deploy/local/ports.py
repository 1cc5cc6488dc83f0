"""Free loopback ports: the preferred one when nobody listens there, else any."""

from __future__ import annotations

import socket


def free_port(preferred: int = 0) -> int:
    """A TCP port on 127.0.0.1 that nothing listens on now; ``preferred`` when that is free."""
    for wanted in (preferred, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free loopback port")
