from django.urls import path

from models_app.api import events, views

urlpatterns = [
    path("deployments/", views.DeploymentsView.as_view(), name="api-deployments"),
    path("deployments/<public_id:public_id>/", views.DeploymentView.as_view(), name="api-deployment"),
    path("deployments/<public_id:public_id>/pods/", views.DeploymentPodsView.as_view(), name="api-deployment-pods"),
    path(
        "deployments/<public_id:public_id>/manifest/", views.DeploymentManifestView.as_view(), name="api-deployment-manifest"
    ),
    path(
        "deployments/<public_id:public_id>/timeline/", views.DeploymentTimelineView.as_view(), name="api-deployment-timeline"
    ),
    path(
        "deployments/<public_id:public_id>/revisions/",
        views.DeploymentRevisionsView.as_view(),
        name="api-deployment-revisions",
    ),
    path("deployments/<public_id:public_id>/events/", events.DeploymentEventsView.as_view(), name="api-deployment-events"),
]
