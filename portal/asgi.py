"""The web process: pages, REST and event streams over ASGI."""

from django.core.asgi import get_asgi_application

from portal.settings.environment import use_settings

use_settings("portal.settings.web")

from portal.celery import app  # noqa: E402  (its own default settings are the worker's)

application = get_asgi_application()

__all__ = ["app", "application"]
