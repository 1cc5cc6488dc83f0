from django.apps import AppConfig

from portal.site.queue import stamp_messages


class SiteConfig(AppConfig):
    name = "portal.site"
    label = "site"
    verbose_name = "Site"

    def ready(self) -> None:
        stamp_messages()
