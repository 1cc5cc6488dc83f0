"""docker-compose.yml says what `make run` does: same commands, same settings, same health paths, variables that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from deploy.local.processes import PROCESSES, Process

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
VALUES = {
    "host": "0.0.0.0",
    "gateway_host": "gateway",
    "web_port": "8000",
    "gateway_port": "8100",
    "door_port": "8080",
    "envoy_admin_port": "8101",
    "state": "/var/lib/slipway",
    "access_log": "/var/lib/slipway/access.log",
}


def test_it_is_a_valid_compose_file() -> None:
    # The parser wants interpolation done and anchors resolved, as the engine does both before it reads the schema.
    interpolated = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", TEXT)
    parsed = PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(interpolated)))
    assert {process.name for process in PROCESSES} < set(parsed.service_names())


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_a_service_runs_what_make_run_runs(process: Process) -> None:
    service = COMPOSE["services"][process.name]
    assert service["command"] == [part.format(**VALUES) for part in process.command]
    assert service["environment"]["DJANGO_SETTINGS_MODULE"] == process.settings
    if process.health:
        assert f"127.0.0.1:{VALUES[process.port]}{process.health}" in service["healthcheck"]["test"][-1]


def test_each_variable_is_one_that_the_settings_read() -> None:
    settings = "".join(path.read_text() for path in (ROOT / "portal" / "settings").glob("*.py"))
    for name in COMPOSE["x-slipway"]["environment"]:
        assert f'"{name.removesuffix("_FILE")}"' in settings, name


def test_a_process_list_that_compose_lacks_is_noticed() -> None:
    ours = {name for name, service in COMPOSE["services"].items() if "slipway" in str(service.get("image", ""))}
    assert ours == {process.name for process in PROCESSES} | {"migrate"}
