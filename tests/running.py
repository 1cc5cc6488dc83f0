"""The whole of Slipway running, for flows, chaos and pages: every process, a database of its own, the real cluster."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from deploy.local.chromium import chromium
from deploy.local.fleet import LocalFleet
from deploy.local.stack import Stack
from deploy.local.state import state_dir

# Playwright runs a loop in this thread; the fixtures' own queries in it are plain and stand in nobody's way.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

_DATABASE = f"slipway_flow_{os.getpid()}"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def stack(local_fleet: LocalFleet) -> Iterator[Stack]:
    """Started, loaded with the demo, and pointed at the real cluster."""
    state = state_dir() / "test" / f"flow-{os.getpid()}"
    server = os.environ["SLIPWAY_DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{_DATABASE}"')
    running = Stack(
        state=state,
        say=print,
        database_url=server.replace("/postgres?", f"/{_DATABASE}?"),
    )
    try:
        running.prepare()
        local_fleet.control_plane.write_credential(running.credentials, "local")
        running.start()
        assert running.wait_for(f"{running.web_url}/healthz", within=60, stopped=threading.Event()), logs(running.logs)
        yield running
    finally:
        running.stop()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{_DATABASE}" WITH (FORCE)')
        shutil.rmtree(state, ignore_errors=True)


def logs(folder: Path) -> str:
    """The last lines of every process, for a failing test's message."""
    return "\n".join(
        f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
        for path in sorted(folder.glob("*"))
    )


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """The real Chromium. Playwright keeps a loop running in this thread, in which no other test could start one: so it ends
    with each module."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chrome: Browser, stack: Stack) -> Iterator[Page]:
    """A fresh person's window onto the running stack."""
    context = chrome.new_context(base_url=stack.web_url, viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()
