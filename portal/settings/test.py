"""Tests: the web process's settings on the embedded services that tests/stack.py starts."""

import os

from portal.settings.web import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SESSION_COOKIE_SECURE = False
CSRF_COOKIE_SECURE = False
SECURE_HSTS_SECONDS = 0
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
_options = {name: value for name, value in DATABASES["default"]["OPTIONS"].items() if name != "pool"}  # noqa: F405
DATABASES = {
    "default": {**DATABASES["default"], "OPTIONS": _options, "TEST": {"NAME": f"test_slipway_{os.getpid()}"}}  # noqa: F405
}
