from django.urls import path

import portal.tenancy.paths  # noqa: F401  (registers <public_id:…>)
from portal.tenancy.web import tokens

urlpatterns = [
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/<public_id:public_id>/revoke/", tokens.token_end, name="token-revoke"),
]
