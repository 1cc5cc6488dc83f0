from django.urls import path

from portal.tenancy.api import organizations, people, projects

urlpatterns = [
    path("me/", people.MeView.as_view(), name="api-me"),
    path("tokens/", people.TokensView.as_view(), name="api-tokens"),
    path("tokens/<public_id:public_id>/", people.TokenView.as_view(), name="api-token"),
    path("users/", people.UsersView.as_view(), name="api-users"),
    path("users/<public_id:public_id>/", people.UserView.as_view(), name="api-user"),
    path("users/<public_id:public_id>/deactivate/", people.UserDeactivateView.as_view(), name="api-user-deactivate"),
    path("organizations/", organizations.OrganizationsView.as_view(), name="api-organizations"),
    path("organizations/<public_id:public_id>/", organizations.OrganizationView.as_view(), name="api-organization"),
    path(
        "organizations/<public_id:public_id>/administrators/",
        organizations.AdministratorsView.as_view(),
        name="api-administrators",
    ),
    path(
        "organizations/<public_id:public_id>/administrators/<public_id:user_id>/",
        organizations.AdministratorView.as_view(),
        name="api-administrator",
    ),
    path("projects/", projects.ProjectsView.as_view(), name="api-projects"),
    path("projects/<public_id:public_id>/", projects.ProjectView.as_view(), name="api-project"),
    path("projects/<public_id:public_id>/close/", projects.ProjectCloseView.as_view(), name="api-project-close"),
    path("projects/<public_id:public_id>/members/", projects.MembersView.as_view(), name="api-members"),
    path("projects/<public_id:public_id>/members/<public_id:user_id>/", projects.MemberView.as_view(), name="api-member"),
]
