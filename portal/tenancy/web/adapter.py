"""Local sign-in through allauth, without sign-up: accounts are made by those who manage identities."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    """Django's validators hold for every new password; failed sign-ins are limited by ACCOUNT_RATE_LIMITS."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        return "/"

    def add_message(self, *args: object, **kwargs: object) -> None:
        """No "successfully signed in": the page that opens says it."""
