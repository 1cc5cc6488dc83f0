"""Every page a person can open, by a name for its picture."""

from __future__ import annotations

from dataclasses import dataclass

from tests.browser.scene import Scene


@dataclass(frozen=True, slots=True)
class Place:
    """``who`` of the cast looks; "" is somebody who has not signed in."""

    name: str
    who: str
    address: str


def places(scene: Scene) -> list[Place]:
    project = scene.cast.project.public_id
    return [
        Place("sign-in", "", "/accounts/login/"),
        Place("home", "member", "/"),
        Place("home-of-a-lead", "lead", "/"),
        Place("home-of-nobody", "fleet_operator", "/"),
        Place("ask-which-project", "platform_admin", "/ask/"),
        Place("ask-model", "member", f"/projects/{project}/ask/"),
        Place("ask-gpus", "member", f"/projects/{project}/ask-gpus/"),
        Place("requests", "member", "/requests/"),
        Place("request-own", "member", f"/requests/{scene.waiting}/"),
        Place("request-to-decide", "lead", f"/requests/{scene.waiting}/"),
        Place("request-decided", "lead", f"/requests/{scene.decided}/"),
        Place("inbox", "lead", "/inbox/"),
        Place("inbox-empty", "viewer", "/inbox/"),
        Place("deployments", "member", "/deployments/"),
        Place("deployment-ready", "member", f"/deployments/{scene.ready.public_id}/"),
        Place("deployment-failing", "viewer", f"/deployments/{scene.failing.public_id}/"),
        Place("project", "lead", f"/projects/{project}/"),
        Place("usage", "member", f"/projects/{project}/usage/"),
        Place("usage-intervals", "member", f"/projects/{project}/usage/intervals/"),
        Place("keys", "member", f"/projects/{project}/keys/"),
        Place("tokens", "member", "/tokens/"),
        Place("fleet", "fleet_operator", "/fleet/"),
        Place("password", "member", "/accounts/password/change/"),
        Place("not-found", "member", "/deployments/dep_00000000000000000000/"),
        Place("forbidden", "viewer", f"/projects/{project}/ask/"),
    ]
