import pytest
from portal.tenancy.models import User
@pytest.mark.django_db
def test_x():
    User.objects.create_user(email="a@b.c", password="x", name="A"); assert User.objects.count()==1
