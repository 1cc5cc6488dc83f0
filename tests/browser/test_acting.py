"""Acts in the browser that must not do more, or other, than the person meant."""

from __future__ import annotations

import pytest
from django.test import Client
from playwright.sync_api import BrowserContext, expect

from models_app.models import Deployment
from portal.approvals.models import Request
from portal.tenancy.models import unscoped
from tests.browser.conftest import sign_in
from tests.browser.scene import Scene

pytestmark = pytest.mark.browser


def test_enter_in_the_reason_or_on_a_tick_decides_nothing(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.lead.email)
    page.goto("/inbox/")
    reason = page.get_by_placeholder("Reason; needed to deny")
    reason.fill("not yet")
    page.get_by_label("Tick Model qwen-2-5-coder").press("Enter")
    reason.press("Enter")
    assert page.get_by_test_id("inbox-form").get_attribute("data-sent") is None  # set in the same turn as a submit
    assert reason.input_value() == "not yet"  # lost when the page was left
    with unscoped("a test reads the rows"):
        assert Request.objects.get(public_id=scene.waiting).state == "submitted"


def test_deciding_what_somebody_else_decided_meanwhile_is_told_and_changes_nothing(
    window: BrowserContext, scene: Scene
) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.lead.email)
    page.route("**/live/**", lambda route: route.abort())  # a window that missed the news
    page.goto(f"/requests/{scene.waiting}/")
    colleague = Client()
    colleague.force_login(scene.cast.org_admin)
    assert colleague.post(f"/requests/{scene.waiting}/deny/", {"reason": "Use the shared one."}).status_code == 302
    page.get_by_test_id("approve").click()
    expect(page.get_by_test_id("error-page")).to_be_visible()
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_test_id("request-state")).to_have_attribute("data-state", "denied")
    with unscoped("a test reads the rows"):
        assert Request.objects.get(public_id=scene.waiting).state == "denied"


def test_deleting_takes_the_name_and_shows_at_once(window: BrowserContext, scene: Scene) -> None:
    page = window.new_page()
    sign_in(page, scene.cast.member.email)
    page.goto(f"/deployments/{scene.ready.public_id}/")
    page.get_by_test_id("delete-open").click()
    page.get_by_test_id("delete").click()
    expect(page.locator("#confirm:invalid")).to_be_focused()
    page.locator("#confirm").fill(scene.ready.name)
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("deployment-state")).to_have_attribute("data-state", "deleting")
    expect(page.get_by_test_id("delete-open")).to_have_count(0)
    with unscoped("a test reads the row"):
        assert Deployment.objects.get(pk=scene.ready.pk).desired == "absent"
