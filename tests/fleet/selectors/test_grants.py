from datetime import timedelta

import pytest

from fleet.selectors.grants import grant_for, grant_get, grant_list, grants_with_use, grants_with_use_of, holds_of
from portal.audit.domain.actors import Actor
from portal.kernel import clock
from portal.kernel.errors import NotFound
from tests.cast import make_grant, make_hold, make_profile

LOOP = Actor.service("test")


@pytest.fixture
def grant(cast):
    return make_grant(cast.project, make_profile(), devices=8)


def test_grants_stay_inside_the_tenant(cast, act, grant):
    foreign = make_grant(cast.other_project, grant.profile)
    assert list(grant_list(actor=act("viewer"))) == [grant]
    assert set(grant_list(actor=act("auditor"))) == {grant, foreign}
    assert not grant_list(actor=act("fleet_operator"))
    assert grant_get(actor=act("viewer"), public_id=grant.public_id) == grant
    with pytest.raises(NotFound):
        grant_get(actor=act("viewer"), public_id=foreign.public_id)
    with pytest.raises(NotFound):
        grant_list(actor=act("outsider"), project=cast.project)
    with pytest.raises(NotFound):
        holds_of(actor=act("outsider"), grant=grant)


def test_use_is_what_is_held_now(cast, act, grant):
    make_hold(grant, "dep_a", 3)
    make_hold(grant, "dep_b", 2)
    make_hold(grant, "dep_gone", 4, ended_at=clock.now())
    (use,) = grants_with_use(project=cast.project)
    assert (use.grant, use.held, use.used, use.free, use.over, use.percent) == (grant, 5, 5, 3, 0, 62)
    assert [hold.consumer_id for hold in holds_of(actor=act("viewer"), grant=grant)] == ["dep_a", "dep_b"]


def test_more_held_than_granted_is_shown_and_never_negative(cast, grant):
    make_hold(grant, "dep_a", 11)
    (use,) = grants_with_use(project=cast.project)
    assert (use.held, use.free, use.over, use.percent) == (11, 0, 3, 100)


def test_ended_grants_are_not_in_the_picture_and_unstarted_ones_have_nothing_free(cast):
    profile = make_profile()
    make_grant(cast.project, profile, state="expired")
    later = make_grant(cast.project, profile, state="pending", starts_at=clock.now() + timedelta(days=1))
    (use,) = grants_with_use(project=cast.project)
    assert (use.grant, use.free) == (later, 0)
    assert grant_list(actor=LOOP, live_only=True).count() == 1
    assert grant_list(actor=LOOP).count() == 2


def test_the_grant_to_hold_on(cast, grant):
    assert grant_for(cast.project, grant.profile) == grant
    assert grant_for(cast.other_project, grant.profile) is None
    assert grant_for(cast.project, make_profile()) is None
    with clock.frozen(clock.now()) as frozen:
        make_grant(cast.other_project, grant.profile, ends_at=frozen.at + timedelta(hours=1))
        assert grant_for(cast.other_project, grant.profile) is not None
        frozen.advance(timedelta(hours=1))
        assert grant_for(cast.other_project, grant.profile) is None


def test_use_costs_one_query_with_many(cast, act, django_assert_num_queries):
    for _ in range(20):
        make_hold(make_grant(cast.project, make_profile()), f"dep_{_}", 1)
    with django_assert_num_queries(1):
        uses = grants_with_use(project=cast.project)
        assert len([use.grant.profile.title for use in uses]) == 20
    with django_assert_num_queries(1):
        assert len([use.grant.project.organization.name for use in grants_with_use_of(actor=act("viewer"))]) == 20
