from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from models_app.web import ask, deployments

urlpatterns = [
    path("ask/", ask.ask, name="ask"),
    path("projects/<public_id:public_id>/ask/", ask.ask_model, name="ask-model"),
    path("projects/<public_id:public_id>/ask/preview/", ask.ask_model_preview, name="ask-model-preview"),
    path("deployments/", deployments.deployments, name="deployment-list"),
    path("deployments/live/", deployments.deployments_live, name="deployment-list-live"),
    path("deployments/<public_id:public_id>/", deployments.deployment, name="deployment"),
    path("deployments/<public_id:public_id>/live/", deployments.deployment_live, name="deployment-live"),
    path("deployments/<public_id:public_id>/scale/", deployments.deployment_rescale, name="deployment-scale"),
    path("deployments/<public_id:public_id>/delete/", deployments.deployment_end, name="deployment-delete"),
]
