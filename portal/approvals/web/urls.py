from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from portal.approvals.web import requests

urlpatterns = [
    path("requests/", requests.requests, name="request-list"),
    path("requests/live/", requests.requests_live, name="request-list-live"),
    path("requests/<public_id:public_id>/", requests.request_detail, name="request"),
    path("requests/<public_id:public_id>/live/", requests.request_live, name="request-live"),
    path("requests/<public_id:public_id>/approve/", requests.request_approve, name="request-approve"),
    path("requests/<public_id:public_id>/deny/", requests.request_deny, name="request-deny"),
    path("requests/<public_id:public_id>/withdraw/", requests.request_take_back, name="request-withdraw"),
    path("requests/<public_id:public_id>/revoke/", requests.request_undo, name="request-revoke"),
]
