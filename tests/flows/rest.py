"""A REST client of a running Slipway, as automation would write it: one person, one token."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import httpx

from deploy.local.stack import Stack

Json = dict[str, Any]


def signed_in(stack: Stack, email: str) -> httpx.Client:
    """A browser session of one of the demo's people, by the sign-in form."""
    client = httpx.Client(base_url=stack.web_url, follow_redirects=True, timeout=30, trust_env=False)
    form = client.get("/accounts/login/").text
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token, form[:500]
    answer = client.post(
        "/accounts/login/",
        data={"csrfmiddlewaretoken": token[1], "login": email, "password": stack.password_file.read_text()},
        headers={"Referer": stack.web_url},
    )
    assert answer.status_code == 200, answer.text[:500]
    shown = " ".join(re.sub("<[^>]+>", " ", answer.text).split())
    assert "sessionid" in client.cookies, f"not signed in, at {answer.url}: {shown[-600:]}"
    return client


class Rest:
    """``/api/v1/`` as one person, with a token made for it."""

    def __init__(self, stack: Stack, email: str) -> None:
        with contextlib.closing(signed_in(stack, email)) as browser:
            made = browser.post(
                "/api/v1/tokens/",
                json={"name": "flow", "scopes": ["read", "write"], "expires_in_days": 1},
                headers={"X-CSRFToken": browser.cookies["csrftoken"], "Referer": stack.web_url},
            )
            assert made.status_code == 201, made.text
        self._client = httpx.Client(
            base_url=f"{stack.web_url}/api/v1/",
            headers={"Authorization": f"Bearer {made.json()['secret']}"},
            timeout=30,
            trust_env=False,
        )

    def get(self, path: str, **params: Any) -> Json:
        """The answer's body; fails the test on anything but 200."""
        answer = self._client.get(path, params=params)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text}"
        body: Json = answer.json()
        return body

    def call(self, method: str, path: str, body: Json | None = None, **headers: str) -> httpx.Response:
        return self._client.request(method, path, json=body, headers=headers)

    def post(self, path: str, body: Json) -> Json:
        """The answer's body; fails the test on anything but 2xx."""
        answer = self.call("POST", path, body)
        assert answer.is_success, f"POST {path}: {answer.status_code} {answer.text}"
        made: Json = answer.json()
        return made

    def project(self, slug: str) -> str:
        """The public id of a project by its slug."""
        return next(str(one["id"]) for one in self.get("projects/")["results"] if one["slug"] == slug)
