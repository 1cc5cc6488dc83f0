from django.urls import path

from routing.api import views

urlpatterns = [
    path("projects/<public_id:public_id>/keys/", views.KeysView.as_view(), name="api-keys"),
    path("keys/<public_id:public_id>/", views.KeyView.as_view(), name="api-key"),
]
