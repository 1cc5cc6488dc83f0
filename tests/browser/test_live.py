"""What moves in the browser: changes appear by themselves, what a reader does is not undone by them, and keys reach all."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, expect

from models_app.models import Deployment
from portal.approvals.models import Request
from portal.approvals.services.requests import request_submit
from portal.tenancy.models import unscoped
from tests.browser.conftest import sign_in
from tests.browser.scene import Scene, payload
from tests.cast import actor_of

pytestmark = pytest.mark.browser
SOON = 3_000
"""Milliseconds within which a change shows without a reload."""


def test_a_change_of_state_shows_within_three_seconds_without_reload(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.member.email)
    page.goto("/deployments/?phase=idle")
    page.evaluate("window.sameWindow = true")
    expect(page.get_by_text("embed-small")).to_be_visible()
    with unscoped("a test changes the row"):
        Deployment.objects.filter(name="embed-small").update(phase="ready")
    expect(page.get_by_text("embed-small")).to_be_hidden(timeout=SOON)
    assert page.evaluate("window.sameWindow")


def test_a_new_request_joins_the_inbox_and_what_was_ticked_and_typed_stays(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.lead.email)
    page.goto("/inbox/")
    tick = page.get_by_label("Tick Model qwen-2-5-coder")
    tick.check()
    page.get_by_placeholder("Reason; needed to deny").fill("not this week")
    request_submit(
        actor=actor_of(scene.cast.member), kind="deployment", project=scene.cast.project, payload=payload("newcomer")
    )
    expect(page.get_by_role("link", name="newcomer")).to_be_visible(timeout=SOON)
    expect(tick).to_be_checked()
    expect(page.get_by_placeholder("Reason; needed to deny")).to_have_value("not this week")
    page.get_by_test_id("bulk-deny").click()
    expect(page.get_by_test_id("notice")).to_contain_text("Denied")
    with unscoped("a test reads the row"):
        assert Request.objects.get(public_id=scene.waiting).state == "denied"


def test_the_preview_follows_the_form_and_the_request_is_sent_once(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.member.email)
    page.get_by_test_id("ask").first.click()
    form = page.get_by_test_id("ask-form")
    form.get_by_label("Model name").fill("tiny")
    form.get_by_label("Model files").fill("hf://acme/tiny")
    form.get_by_label("GGUF file").fill("tiny.gguf")
    expect(page.get_by_test_id("preview-checks")).to_be_visible(timeout=SOON)
    form.get_by_label("GPUs a replica").fill("9")
    expect(page.get_by_test_id("preview").locator("[data-verdict=refuse]").first).to_be_visible(timeout=SOON)
    form.get_by_label("GPUs a replica").fill("1")
    expect(page.get_by_test_id("preview").locator("[data-verdict=refuse]")).to_have_count(0, timeout=SOON)
    page.get_by_test_id("submit").dblclick()
    expect(page.get_by_test_id("request-state")).to_have_attribute("data-state", "submitted")
    with unscoped("a test counts"):
        assert Request.objects.filter(payload__name="tiny").count() == 1


def test_an_ended_session_leads_from_a_live_page_to_sign_in_and_back(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.member.email)
    page.goto("/deployments/")
    window.clear_cookies()
    page.wait_for_url("**/accounts/login/?next=%2Fdeployments%2F", timeout=SOON + 2_000)
    expect(page.get_by_test_id("sign-in")).to_be_visible()


def test_keys_alone_reach_the_page_its_menu_and_the_dark_side(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.member.email)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_label("Your account").press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    page.get_by_label("Light or dark").press("Enter")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_the_main_job_works_without_scripts(
    window: BrowserContext, scene: Scene, chrome: object, live_server: object
) -> None:
    plain = chrome.new_context(base_url=str(live_server), java_script_enabled=False)  # type: ignore[attr-defined]
    page = plain.new_page()
    sign_in(page, scene.cast.lead.email)
    page.goto("/inbox/")
    page.get_by_role("link", name="qwen-2-5-coder").click()
    page.get_by_label("Reason").fill("no")
    page.get_by_test_id("deny").click()
    expect(page.get_by_test_id("request-state")).to_have_attribute("data-state", "denied")
    plain.close()
