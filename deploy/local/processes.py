"""The processes of Slipway and how each is started: one list for `make run`, docker-compose.yml and the chart.

``{name}`` in a command is filled in by whoever starts it; `tests/deploy/test_compose.py` holds docker-compose.yml to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Process:
    """``settings`` is the settings module; ``health`` a path on ``port`` that answers 200 once it serves."""

    name: str
    command: tuple[str, ...]
    settings: str
    port: str = ""
    health: str = ""
    environment: dict[str, str] = field(default_factory=dict)


PROCESSES = (
    Process(
        name="web",
        command=(
            "uvicorn",
            "portal.asgi:application",
            "--host",
            "{host}",
            "--port",
            "{web_port}",
            "--lifespan",
            "off",
            "--no-server-header",
            "--no-access-log",
        ),
        settings="portal.settings.web",
        port="web_port",
        health="/healthz",
    ),
    Process(
        name="worker",
        command=(
            "celery",
            "-A",
            "portal.celery",
            "worker",
            "--concurrency",
            "2",
            "--loglevel",
            "WARNING",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ),
        settings="portal.settings.worker",
    ),
    Process(
        name="beat",
        command=(
            "celery",
            "-A",
            "portal.celery",
            "beat",
            "--loglevel",
            "WARNING",
            "--schedule",
            "{state}/beat-schedule",
            "--pidfile",
            "",
        ),
        settings="portal.settings.worker",
    ),
    Process(
        name="observer",
        command=("python", "manage.py", "fleet_observe"),
        settings="portal.settings.worker",
    ),
    Process(
        name="gateway",
        command=(
            "uvicorn",
            "routing.authz.asgi:application",
            "--host",
            "{host}",
            "--port",
            "{gateway_port}",
            "--lifespan",
            "on",
            "--no-server-header",
            "--timeout-graceful-shutdown",
            "3",
            "--no-access-log",
        ),
        settings="portal.settings.gateway",
        port="gateway_port",
        health="/healthz",
    ),
    Process(
        name="envoy",
        command=(
            "python",
            "-m",
            "deploy.envoy",
            "--xds-host",
            "{gateway_host}",
            "--xds-port",
            "{gateway_port}",
            "--host",
            "{host}",
            "--door-port",
            "{door_port}",
            "--admin-port",
            "{envoy_admin_port}",
            "--access-log",
            "{access_log}",
            "--state",
            "{state}",
        ),
        settings="portal.settings.gateway",
    ),
)
