from django.urls import path

from fleet.api import capacity, grants, nodes, usage

urlpatterns = [
    path("profiles/", capacity.ProfilesView.as_view(), name="api-profiles"),
    path("profiles/<public_id:public_id>/", capacity.ProfileView.as_view(), name="api-profile"),
    path("profiles/<public_id:public_id>/cells/", capacity.ProfileCellsView.as_view(), name="api-profile-cells"),
    path("clusters/", capacity.ClustersView.as_view(), name="api-clusters"),
    path("clusters/<public_id:public_id>/", capacity.ClusterView.as_view(), name="api-cluster"),
    path("grants/", grants.GrantsView.as_view(), name="api-grants"),
    path("grants/<public_id:public_id>/", grants.GrantView.as_view(), name="api-grant"),
    path("grants/<public_id:public_id>/holds/", grants.GrantHoldsView.as_view(), name="api-grant-holds"),
    path("projects/<public_id:public_id>/grants/", grants.ProjectGrantsView.as_view(), name="api-project-grants"),
    path("projects/<public_id:public_id>/usage/", usage.UsageView.as_view(), name="api-usage"),
    path("projects/<public_id:public_id>/intervals/", usage.IntervalsView.as_view(), name="api-intervals"),
    path("nodes/", nodes.NodesView.as_view(), name="api-nodes"),
    path("capacity/", nodes.CapacityView.as_view(), name="api-capacity"),
]
