from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models_app.domain.convergence import Act, Key, Live, Plan, Step, Wanted, decide

NAMES = ("Deployment", "Service", "HorizontalPodAutoscaler")
keys = st.sampled_from([(name, "x") for name in NAMES])
hashes = st.sampled_from(["h1", "h2"])


@st.composite
def lives(draw: st.DrawFn, newest: int = 5) -> dict[Key, Live]:
    found = {}
    for key in draw(st.sets(keys)):
        found[key] = Live(
            key=key,
            uid=f"u-{key[0]}",
            resource_version=str(draw(st.integers(1, 9))),
            ours=draw(st.booleans()),
            generation=draw(st.none() | st.integers(1, newest)),
            spec_hash=draw(hashes),
            drifted=draw(st.booleans()),
            deleting=draw(st.booleans()),
        )
    return found


wanteds = st.dictionaries(keys, hashes).map(lambda items: [Wanted(key, value) for key, value in items.items()])


def live(key: Key = ("Deployment", "x"), **changes: object) -> Live:
    return Live(
        **{"key": key, "uid": "u", "resource_version": "7", "ours": True, "generation": 2, "spec_hash": "h1", **changes}  # type: ignore[arg-type]
    )


D = ("Deployment", "x")


def test_absent_is_created() -> None:
    assert decide(wanted=[Wanted(D, "h1")], live={}, generation=2) == Plan(steps=(Step(Act.CREATE, D),))


def test_as_wanted_is_left_alone() -> None:
    assert decide(wanted=[Wanted(D, "h1")], live={D: live()}, generation=2) == Plan()


def test_another_hash_an_older_stamp_or_drift_is_changed_with_uid_and_version() -> None:
    change = Plan(steps=(Step(Act.CHANGE, D, "u", "7"),))
    assert decide(wanted=[Wanted(D, "h2")], live={D: live()}, generation=2) == change
    assert decide(wanted=[Wanted(D, "h1")], live={D: live(generation=1)}, generation=2) == change
    assert decide(wanted=[Wanted(D, "h1")], live={D: live(generation=None)}, generation=2) == change
    assert decide(wanted=[Wanted(D, "h1")], live={D: live(drifted=True)}, generation=2) == change


def test_a_stalled_pass_of_an_older_generation_does_nothing() -> None:
    assert decide(wanted=[Wanted(D, "h2")], live={D: live(generation=3)}, generation=2) == Plan(stale=True)
    assert decide(wanted=[], live={D: live(generation=3)}, generation=2) == Plan(stale=True)


def test_an_object_that_is_not_ours_is_never_adopted_or_removed() -> None:
    theirs = {D: live(ours=False, generation=None)}
    assert decide(wanted=[Wanted(D, "h1")], live=theirs, generation=2) == Plan(foreign=(D,))
    assert decide(wanted=[], live=theirs, generation=2) == Plan()


def test_c21_what_is_being_deleted_is_waited_for_and_not_deleted_again() -> None:
    going = {D: live(deleting=True)}
    assert decide(wanted=[Wanted(D, "h1")], live=going, generation=2) == Plan(steps=(Step(Act.WAIT_GONE, D, "u"),))
    assert decide(wanted=[], live=going, generation=2) == Plan(steps=(Step(Act.WAIT_GONE, D, "u"),))


def test_what_is_no_longer_wanted_goes_by_its_uid() -> None:
    scaler = ("HorizontalPodAutoscaler", "x")
    plan = decide(wanted=[Wanted(D, "h1")], live={D: live(), scaler: live(scaler, uid="s")}, generation=2)
    assert plan == Plan(steps=(Step(Act.DELETE, scaler, "s"),))


@given(wanteds, lives(), st.integers(1, 5))
def test_nothing_foreign_is_ever_touched(wanted: list[Wanted], found: dict[Key, Live], generation: int) -> None:
    plan = decide(wanted=wanted, live=found, generation=generation)
    assert all(found[step.key].ours for step in plan.steps if step.key in found)
    assert not (plan.steps and (plan.stale or plan.foreign))


@given(wanteds, lives(), st.integers(1, 5))
def test_every_change_of_what_exists_is_fenced(wanted: list[Wanted], found: dict[Key, Live], generation: int) -> None:
    for step in decide(wanted=wanted, live=found, generation=generation).steps:
        if step.key not in found:
            assert step.act is Act.CREATE
        else:
            assert step.uid == found[step.key].uid
            if step.act is Act.CHANGE:
                assert step.resource_version == found[step.key].resource_version


@given(wanteds, lives(), st.integers(1, 5))
def test_a_plan_carried_out_leaves_nothing_to_do(wanted: list[Wanted], found: dict[Key, Live], generation: int) -> None:
    plan = decide(wanted=wanted, live=found, generation=generation)
    if plan.stale or plan.foreign:
        assert plan.steps == ()
        return
    hashes_wanted = {item.key: item.spec_hash for item in wanted}
    after = dict(found)
    for step in plan.steps:
        if step.act in (Act.CREATE, Act.CHANGE):
            after[step.key] = live(step.key, generation=generation, spec_hash=hashes_wanted[step.key])
        else:
            after.pop(step.key)
    second = decide(wanted=wanted, live=after, generation=generation)
    assert all(step.act is Act.CREATE for step in second.steps)
    assert {step.key for step in second.steps} == {step.key for step in plan.steps if step.act is Act.WAIT_GONE} & set(
        hashes_wanted
    )


@given(lives(newest=1))
def test_nothing_wanted_orders_exactly_what_is_ours_to_go(found: dict[Key, Live]) -> None:
    plan = decide(wanted=[], live=found, generation=1)
    assert {step.key for step in plan.steps} == {key for key, item in found.items() if item.ours}
    assert all(step.act in (Act.DELETE, Act.WAIT_GONE) for step in plan.steps)
