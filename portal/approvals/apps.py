from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "portal.approvals"
    label = "approvals"
    verbose_name = "Approvals"

    def ready(self) -> None:
        from portal.approvals.services.parts.moves import requests_end_with_project  # noqa: PLC0415 - models load first
        from portal.tenancy import closing  # noqa: PLC0415

        closing.register("requests", requests_end_with_project)
