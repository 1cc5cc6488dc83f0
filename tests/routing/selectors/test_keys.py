"""Keys are listed to members of their project only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.audit.domain.actors import Actor
from portal.kernel.errors import NotFound
from routing.selectors.keys import key_get, key_list
from routing.services.keys import key_create, key_revoke
from tests.cast import Cast

Act = Callable[[str], Actor]


def test_the_list_is_the_projects_own_newest_first_ended_ones_included(cast: Cast, act: Act) -> None:
    mine = [key_create(actor=act("member"), project=cast.project, name=f"k{n}")[0] for n in range(3)]
    key_create(actor=act("outsider"), project=cast.other_project, name="theirs")
    key_revoke(actor=act("member"), public_id=mine[1].public_id)
    assert [key.public_id for key in key_list(actor=act("viewer"), project=cast.project)] == [
        key.public_id for key in reversed(mine)
    ]


def test_a_stranger_finds_neither_list_nor_key(cast: Cast, act: Act) -> None:
    key, _ = key_create(actor=act("member"), project=cast.project, name="k")
    with pytest.raises(NotFound):
        key_list(actor=act("outsider"), project=cast.project)
    with pytest.raises(NotFound):
        key_get(actor=act("outsider"), public_id=key.public_id)
    assert key_get(actor=act("viewer"), public_id=key.public_id) == key


def test_the_list_costs_the_same_with_2_and_with_20_keys(cast: Cast, act: Act) -> None:
    costs = []
    for wanted in (2, 20):
        while len(key_list(actor=act("lead"), project=cast.project)) < wanted:
            key_create(actor=act("lead"), project=cast.project, name="k")
        actor = act("lead")
        with CaptureQueriesContext(connection) as queries:
            assert len([key.created_by.name for key in key_list(actor=actor, project=cast.project)]) == wanted
        costs.append(len(queries))
    assert costs[0] == costs[1]
