from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "portal.site"
    label = "site"
    verbose_name = "Site"
