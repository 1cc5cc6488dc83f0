import pytest
from django.db import transaction

from portal.kernel.errors import Conflict
from portal.tenancy.models import Project
from portal.tenancy.services.parts.projects import project_keep_open
from tests.cast import make_cast


def test_a_closed_project_is_refused_whatever_the_caller_read_before(cast):
    seen = Project.objects.get(pk=cast.project.pk)
    with transaction.atomic():
        project_keep_open(project=seen)
    Project.objects.filter(pk=seen.pk).update(state="closed")
    with pytest.raises(Conflict, match="closed") as caught, transaction.atomic():
        project_keep_open(project=seen)
    assert caught.value.code == "project_closed"


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_would_hold_nothing():
    with pytest.raises(AssertionError, match="transaction"):
        project_keep_open(project=make_cast().project)
