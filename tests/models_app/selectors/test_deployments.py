from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Grant
from models_app.domain.phases import Phase
from models_app.models import AppliedObject, Deployment, StateChange
from models_app.selectors.choices import deployment_form_choices
from models_app.selectors.deployments import (
    deployment_card,
    deployment_counts,
    deployment_get,
    deployment_list,
    deployment_page,
    deployment_timeline,
)
from portal.audit.domain.actors import Actor
from portal.kernel.clock import now
from portal.kernel.errors import Forbidden, InvalidInput, NotFound
from portal.tenancy.models import unscoped
from tests.cast import Cast, make_cluster, make_deployment, make_grant, make_profile

pytestmark = pytest.mark.django_db

Act = Callable[[str], Actor]


@pytest.fixture
def grant(cast: Cast) -> Grant:
    return make_grant(cast.project, make_profile(), devices=200)


@pytest.fixture
def deployment(cast: Cast, grant: Grant) -> Deployment:
    return make_deployment(grant, make_cluster(), author=cast.member)


@pytest.mark.parametrize("who", ["viewer", "member", "lead", "org_admin", "auditor"])
def test_readers_see_it(deployment: Deployment, act: Act, who: str) -> None:
    assert deployment_get(actor=act(who), public_id=deployment.public_id) == deployment
    assert list(deployment_list(actor=act(who))) == [deployment]
    assert deployment_counts(actor=act(who)) == {"declared": 1}


@pytest.mark.parametrize("who", ["outsider", "fleet_operator", "platform_admin"])
def test_for_everybody_else_it_does_not_exist(deployment: Deployment, act: Act, who: str) -> None:
    for read in (deployment_get, deployment_page, deployment_timeline):
        with pytest.raises(NotFound):
            read(actor=act(who), public_id=deployment.public_id)
    assert list(deployment_list(actor=act(who))) == []
    with pytest.raises(NotFound):
        deployment_list(actor=act(who), project=deployment.project)


def test_lists_narrow_by_phase_and_leave_archived_ones_out(cast: Cast, act: Act, grant: Grant) -> None:
    cluster = make_cluster()
    ready = make_deployment(grant, cluster, author=cast.member, phase="ready")
    gone = make_deployment(grant, cluster, author=cast.member, archived_at=now())
    actor = act("member")
    assert list(deployment_list(actor=actor, phase=Phase.READY)) == [ready]
    assert list(deployment_list(actor=actor, archived=True)) == [gone]
    assert list(deployment_list(actor=actor, phase="failed")) == []
    with pytest.raises(InvalidInput):
        deployment_list(actor=actor, phase="nope")


@pytest.mark.parametrize(
    ("who", "changes", "deletes"), [("viewer", False, False), ("auditor", False, False), ("member", True, True)]
)
def test_the_page_offers_only_what_the_actor_may(
    deployment: Deployment, act: Act, who: str, changes: bool, deletes: bool
) -> None:
    view = deployment_page(actor=act(who), public_id=deployment.public_id)
    assert (view.may_change, view.may_delete) == (changes, deletes)


def test_the_page_of_one_that_is_going_offers_nothing(cast: Cast, act: Act, grant: Grant) -> None:
    row = make_deployment(grant, make_cluster(), author=cast.member, desired="absent")
    view = deployment_page(actor=act("lead"), public_id=row.public_id)
    assert (view.may_change, view.may_delete) == (False, False)


def test_the_page_before_the_first_pass_invents_nothing(deployment: Deployment, act: Act) -> None:
    view = deployment_page(actor=act("member"), public_id=deployment.public_id)
    assert (view.pods, view.events, view.manifests, view.observed_at) == ((), (), (), None)
    assert view.held_devices == 1
    facts = {fact.name: fact.text for fact in view.facts}
    assert facts["admitted"] == "1 devices held"
    assert facts["ready"] == "not observed yet"
    card = deployment_card(view.deployment)
    assert (card.ready, card.wanted) == (None, 1)


def test_the_page_costs_the_same_queries_whatever_it_holds(deployment: Deployment, act: Act) -> None:
    actor = act("member")
    with CaptureQueriesContext(
        connection,
    ) as small:
        deployment_page(actor=actor, public_id=deployment.public_id)
    with unscoped("test"):
        for number in range(20):
            StateChange.objects.create(deployment=deployment, project=deployment.project, phase="ready")
            AppliedObject.objects.create(
                deployment=deployment,
                project=deployment.project,
                api_version="v1",
                kind="Service",
                namespace="n",
                name=f"s{number}",
                spec_hash="h",
                generation=1,
                manifest={"kind": "Service"},
            )
    with CaptureQueriesContext(connection) as large:
        view = deployment_page(actor=actor, public_id=deployment.public_id)
    assert len(view.manifests) == 20
    assert view.manifests[0].yaml == "kind: Service\n"
    assert len(large) == len(small) <= 8


def test_the_list_costs_the_same_queries_with_2_and_with_20_rows(cast: Cast, act: Act, grant: Grant) -> None:
    cluster, actor = make_cluster(), act("member")

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            for row in deployment_list(actor=actor):
                assert deployment_card(row).deployment.project.organization.name
                assert row.cluster.name
                assert row.profile.title
        return len(queries)

    for _ in range(2):
        make_deployment(grant, cluster, author=cast.member)
    first = cost()
    for _ in range(18):
        make_deployment(grant, cluster, author=cast.member)
    assert cost() == first == 1


def test_form_choices_say_which_operator_is_missing(cast: Cast, act: Act, grant: Grant) -> None:
    make_cluster()
    choices = deployment_form_choices(actor=act("member"), project=cast.project)
    assert {item.name: item.note for item in choices.engines} == {"plain": "", "flexinfer": "operator not installed"}
    assert [use.grant for use in choices.grants] == [grant]
    make_cluster(installed_kinds=["ai.flexinfer/v1alpha2/Model"])
    again = deployment_form_choices(actor=act("member"), project=cast.project)
    assert {item.note for item in again.engines} == {""}
    with pytest.raises(Forbidden):
        deployment_form_choices(actor=act("viewer"), project=cast.project)


def test_c32_a_row_that_was_set_aside_needs_attention_and_says_so(cast: Cast, act: Act, grant: Grant) -> None:
    row = make_deployment(grant, make_cluster(), author=cast.member, set_aside_reason="5 passes ended without a result")
    view = deployment_page(actor=act("member"), public_id=row.public_id)
    assert (view.report.phase, view.report.reason) == (Phase.FAILED, "NeedsAttention")
    assert "5 passes" in view.report.message


def test_a_lost_cluster_shows_as_unknown_at_once_and_keeps_what_was_seen(cast: Cast, act: Act, grant: Grant) -> None:
    cluster = make_cluster(reachable=False, last_error="no route to host")
    row = make_deployment(grant, cluster, author=cast.member, phase="ready", observed={"workload": {"present": True}})
    view = deployment_page(actor=act("member"), public_id=row.public_id)
    assert (view.report.phase, view.report.message) == (Phase.UNKNOWN, "no route to host")
    assert {fact.name: fact.state for fact in view.facts}["unknown"] == "yes"
