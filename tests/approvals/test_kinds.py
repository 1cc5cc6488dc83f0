import pytest

from portal.approvals import kinds, tasks
from portal.approvals.models import Request
from portal.approvals.services.requests import UNDECIDED_FOR
from portal.kernel import clock
from portal.kernel.errors import InvalidInput
from portal.tenancy.domain.roles import Permission
from portal.tenancy.models import unscoped
from tests.approvals.kind import NAME, Toy


def test_the_floors_above_have_registered_theirs():
    assert [kind.name for kind in kinds.all_kinds()] == ["deployment", "grant"]
    assert kinds.kind_of("grant").decide_permission is Permission.REQUEST_DECIDE_GRANT
    assert kinds.kind_of("deployment").decide_permission is Permission.REQUEST_DECIDE_DEPLOYMENT


def test_one_name_is_one_kind(toy):
    kind = kinds.kind_of(NAME)
    kinds.register(kind)
    with pytest.raises(ValueError, match="twice"):
        kinds.register(Toy().as_kind())
    assert kinds.known_kind("nope") is None
    with pytest.raises(InvalidInput, match="nope"):
        kinds.kind_of("nope")


def test_revoking_needs_what_deciding_needs_unless_said(toy):
    assert kinds.kind_of(NAME).needs_to_revoke is Permission.REQUEST_DECIDE_DEPLOYMENT
    assert kinds.kind_of("grant").needs_to_revoke is Permission.GRANT_REVOKE


def test_the_task_ends_what_is_over(ask):
    with clock.frozen(clock.now()) as frozen:
        request = ask()
        tasks.requests_expire()
        frozen.advance(UNDECIDED_FOR)
        tasks.requests_expire()
    with unscoped("a test looks"):
        assert Request.objects.get(pk=request.pk).state == "expired"
