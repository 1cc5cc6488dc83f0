from django.urls import path

from portal.site.web import home

urlpatterns = [
    path("", home.home, name="home"),
    path("home/live/", home.home_live, name="home-live"),
    path("inbox/", home.inbox, name="inbox"),
    path("inbox/live/", home.inbox_live, name="inbox-live"),
    path("inbox/decide/", home.inbox_decide, name="inbox-decide"),
]
