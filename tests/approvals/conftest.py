import pytest

from portal.approvals import kinds
from portal.approvals.services.decisions import request_decide
from portal.approvals.services.requests import request_submit
from tests.approvals.kind import NAME, Toy


@pytest.fixture
def toy(monkeypatch):
    """The toy kind, registered for the test."""
    toy = Toy()
    monkeypatch.setitem(kinds._kinds, NAME, toy.as_kind())
    return toy


@pytest.fixture
def ask(cast, act, toy):
    """``ask(devices=1, grant=None, by="member")`` submits a toy request."""

    def submit(devices=1, grant=None, by="member"):
        payload = {"devices": devices, **({"grant": grant.public_id} if grant is not None else {})}
        return request_submit(actor=act(by), kind=NAME, project=cast.project, payload=payload, justification="for science")

    return submit


@pytest.fixture
def approved(ask, act):
    """An approved toy request."""
    request = ask()
    return request_decide(actor=act("lead"), public_id=request.public_id, verdict="approve")
