from django.apps import AppConfig


class ModelsConfig(AppConfig):
    name = "models_app"
    verbose_name = "Models"
