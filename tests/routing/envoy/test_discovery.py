"""Versions of xDS answers: equal content is equal everywhere, and no node ever goes back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.domain.table import Endpoint, Key, Route, RouteTable
from routing.envoy.discovery import Discovery, door_of
from routing.envoy.resources import Door

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
DOOR = Door()
ONE = Route("dep_1", "prj_a", "one", 1, (Endpoint("127.64.0.1", 8080),))
TWO = Route("dep_2", "prj_b", "two", 1, (Endpoint("127.64.0.2", 8080, draining=True),))


def discovery(*routes: Route, seconds: float = 0, keys: dict[str, Key] | None = None) -> Discovery:
    return Discovery(RouteTable(read_at=AT + timedelta(seconds=seconds), routes=routes, keys=keys or {}))


@pytest.mark.parametrize("kind", ["listeners", "routes", "clusters", "endpoints"])
def test_what_a_node_has_is_not_told_again(kind: str) -> None:
    answer = discovery(ONE).answer(kind, ["dep_1"], DOOR, "")
    assert answer is not None
    body = json.loads(answer.body)
    assert body["version_info"] == answer.version
    assert len(body["resources"]) == 1
    assert {one["@type"] for one in body["resources"]} == {body["type_url"]}
    for later in (0, 5, -5):
        assert discovery(ONE, seconds=later).answer(kind, ["dep_1"], DOOR, answer.version) is None


def test_other_endpoints_change_their_own_answer_only() -> None:
    before, after = discovery(ONE, TWO), discovery(replace(ONE, endpoints=()), TWO, seconds=1)
    for kind, names, changed in (
        ("clusters", [], False),
        ("endpoints", ["dep_1"], True),
        ("endpoints", ["dep_2"], False),
        ("listeners", [], False),
        ("routes", [], False),
    ):
        had = before.answer(kind, names, DOOR, "")
        assert had is not None
        assert (after.answer(kind, names, DOOR, had.version) is not None) is changed, (kind, names)


changes = st.lists(
    st.dictionaries(st.sampled_from(["dep_1", "dep_2", "dep_3"]), st.tuples(st.integers(1, 3), st.booleans())), max_size=5
)


@given(changes)
def test_taking_over_from_the_table_before_says_the_same_as_building_anew(said: list[dict[str, tuple[int, bool]]]) -> None:
    before: Discovery | None = None
    for seconds, models in enumerate(said):
        routes = [
            Route(name, "prj_a", name, 1, (Endpoint(f"127.64.0.{last}", 80, draining),))
            for name, (last, draining) in sorted(models.items())
        ]
        table = RouteTable(read_at=AT + timedelta(seconds=seconds), routes=tuple(routes))
        taken, anew = Discovery(table, before), Discovery(table)
        for kind, names in (("clusters", []), ("endpoints", ["dep_1"]), ("endpoints", ["dep_2"])):
            assert taken.answer(kind, names, DOOR, "") == anew.answer(kind, names, DOOR, "")
        before = taken


def test_a_process_that_has_read_less_recently_keeps_quiet_until_it_has_caught_up() -> None:
    newer = discovery(TWO, seconds=2).answer("clusters", [], DOOR, "")
    assert newer is not None
    behind = discovery(ONE, TWO, seconds=1)
    assert behind.answer("clusters", [], DOOR, newer.version) is None
    caught_up = discovery(ONE, seconds=3).answer("clusters", [], DOOR, newer.version)
    assert caught_up is not None


def test_a_clock_that_was_set_back_silences_nobody_for_good() -> None:
    future = discovery(TWO, seconds=3600).answer("clusters", [], DOOR, "")
    assert future is not None
    assert discovery(ONE).answer("clusters", [], DOOR, future.version) is not None


@pytest.mark.parametrize("version", ["nonsense", "1", ".", "1.", "x.y", "9" * 17 + ".0"])
def test_a_version_nobody_gave_gets_all(version: str) -> None:
    assert discovery(ONE).answer("clusters", [], DOOR, version) is not None


def test_an_unknown_cluster_has_no_endpoints_and_an_unknown_kind_is_an_error() -> None:
    assert discovery(ONE).answer("endpoints", ["dep_9"], DOOR, "") is None
    assert discovery(ONE).answer("endpoints", [], DOOR, "") is None
    with pytest.raises(KeyError):
        discovery(ONE).answer("secrets", [], DOOR, "")


def test_no_answer_tells_a_key_or_a_digest() -> None:
    known = discovery(ONE, TWO, keys={"a1b2c3": Key("key_x", "prj_a")})
    for kind in ("listeners", "routes", "clusters", "endpoints"):
        answer = known.answer(kind, ["dep_1"], DOOR, "")
        assert answer is not None
        assert b"a1b2c3" not in answer.body
        assert b"key_x" not in answer.body


def test_the_routes_are_the_same_for_one_model_and_for_thousands() -> None:
    many = [Route(f"dep_{n}", "prj_a", f"m{n}") for n in range(2000)]
    had = discovery(ONE).answer("routes", [], DOOR, "")
    assert had is not None
    assert discovery(*many, seconds=1).answer("routes", [], DOOR, had.version) is None


def test_a_node_describes_its_door_and_not_the_policy() -> None:
    policy = Door(idle_seconds=7, body_bytes=9, origins=("https://a.example",))
    said = {"metadata": {"slipway": {"host": "0.0.0.0", "port": 9000, "access_log": "/x", "idle_seconds": 1}}}
    door = door_of(said, policy)
    assert (door.host, door.port, door.access_log) == ("0.0.0.0", 9000, "/x")
    assert (door.idle_seconds, door.body_bytes, door.origins) == (7, 9, ("https://a.example",))
    assert door_of({}, policy) == policy
    for port in (0, 70000, "x"):
        with pytest.raises(ValueError, match=r"port|invalid literal"):
            door_of({"metadata": {"slipway": {"port": port}}}, policy)
