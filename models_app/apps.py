from django.apps import AppConfig


class ModelsConfig(AppConfig):
    name = "models_app"
    verbose_name = "Models"

    def ready(self) -> None:
        from fleet import consumers  # noqa: PLC0415 - models load first
        from fleet.observer.kinds import watch  # noqa: PLC0415
        from models_app.engines.registry import ENGINES  # noqa: PLC0415
        from models_app.models import Deployment  # noqa: PLC0415
        from models_app.request_kinds import DEPLOYMENT  # noqa: PLC0415
        from models_app.services.parts.deployments import deployment_stop, deployments_end_with_project  # noqa: PLC0415
        from portal.approvals import kinds  # noqa: PLC0415
        from portal.tenancy import closing  # noqa: PLC0415
        from portal.work import hints  # noqa: PLC0415

        kinds.register(DEPLOYMENT)
        consumers.register("deployment", deployment_stop)
        closing.register("deployments", deployments_end_with_project)
        for engine in ENGINES.values():
            watch(*engine.main)
        hints.register("deployment", "models_app.tasks.deployment_reconcile", Deployment)
