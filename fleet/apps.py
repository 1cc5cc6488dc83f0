from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "fleet"
    verbose_name = "Fleet"

    def ready(self) -> None:
        from fleet.models import ProjectSpace  # noqa: PLC0415 - models load first
        from fleet.observer.kinds import watch  # noqa: PLC0415
        from fleet.request_kinds import GRANT  # noqa: PLC0415
        from fleet.services.parts.grants import grants_end_with_project  # noqa: PLC0415
        from fleet.services.parts.spaces import spaces_end_with_project  # noqa: PLC0415
        from portal.approvals import kinds  # noqa: PLC0415
        from portal.tenancy import closing  # noqa: PLC0415
        from portal.work import hints  # noqa: PLC0415

        kinds.register(GRANT)
        closing.register("grants", grants_end_with_project)
        closing.register("spaces", spaces_end_with_project)
        hints.register("space", "fleet.tasks.space_reconcile", ProjectSpace)
        watch("v1", "Namespace")  # one that somebody deletes is made again within seconds, not at the next resync
