from django.urls import path

from portal.approvals.api import views

urlpatterns = [
    path("requests/", views.RequestsView.as_view(), name="api-requests"),
    path("requests/inbox/", views.InboxView.as_view(), name="api-inbox"),
    path("requests/preview/", views.RequestPreviewView.as_view(), name="api-request-preview"),
    path("requests/decide/", views.RequestsDecideView.as_view(), name="api-requests-decide"),
    path("requests/<public_id:public_id>/", views.RequestView.as_view(), name="api-request"),
    path("requests/<public_id:public_id>/outlook/", views.RequestOutlookView.as_view(), name="api-request-outlook"),
    path("requests/<public_id:public_id>/decide/", views.RequestDecideView.as_view(), name="api-request-decide"),
    path("requests/<public_id:public_id>/withdraw/", views.RequestWithdrawView.as_view(), name="api-request-withdraw"),
    path("requests/<public_id:public_id>/revoke/", views.RequestRevokeView.as_view(), name="api-request-revoke"),
]
