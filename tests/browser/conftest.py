"""The pages in the real Chromium, on a live server with a fleet, people and work in every state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.scene import Scene, make_scene
from tests.cast import PASSWORD


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    return make_scene()


@pytest.fixture
def window(chrome: Browser, live_server: object) -> Iterator[BrowserContext]:
    context = chrome.new_context(base_url=str(live_server), viewport={"width": 1440, "height": 900})
    yield context
    context.close()


def sign_in(page: Page, email: str) -> None:
    """Through the form, as a person does."""
    page.goto("/accounts/login/")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
