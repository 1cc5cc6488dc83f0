"""A picture of every page at both widths, light and dark, into the state folder (``make screenshots``); each is also held
to the accessibility rules, fits its width, and breaks no content policy."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage

from deploy.local.state import state_dir
from tests.browser.conftest import sign_in
from tests.browser.places import Place, places
from tests.browser.scene import Scene

WIDTHS = {"1440": {"width": 1440, "height": 900}, "390": {"width": 390, "height": 844}}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

pytestmark = [pytest.mark.browser, pytest.mark.screenshots]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", list(WIDTHS))
def test_every_page_is_sound_and_pictured(chrome: Browser, live_server: Any, scene: Scene, width: str, theme: Any) -> None:
    folder = state_dir() / "screenshots"
    folder.mkdir(exist_ok=True)
    found: list[str] = []
    people = sorted({place.who for place in places(scene)})
    for who in people:
        context = chrome.new_context(base_url=str(live_server), viewport=WIDTHS[width], color_scheme=theme)  # type: ignore[arg-type]
        page = context.new_page()
        if who:
            sign_in(page, scene.cast.people()[who].email)
        noted: list[str] = []

        def note(message: ConsoleMessage, noted: list[str] = noted) -> None:
            if message.type == "error" and "Failed to load resource" not in message.text:
                noted.append(message.text)

        page.on("console", note)
        for place in places(scene):
            if place.who == who:
                page.goto(place.address)
                page.evaluate("document.fonts.ready")
                found += _faults(page, place)
                found += [f"{place.name}: console: {text}" for text in noted]
                noted.clear()
                page.screenshot(path=folder / f"{place.name}-{width}-{theme}.png", full_page=True)
        context.close()
    assert found == []


def _faults(page: Any, place: Place) -> list[str]:
    found = []
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wider > 0:
        found.append(f"{place.name}: {wider} px wider than the window")
    answer = Axe().run(page, options={"runOnly": {"type": "tag", "values": RULES}})
    for violation in answer.response["violations"]:
        nodes = "; ".join(str(node["html"])[:160] for node in violation["nodes"][:3])
        found.append(f"{place.name}: {violation['id']}: {nodes}")
    return found
