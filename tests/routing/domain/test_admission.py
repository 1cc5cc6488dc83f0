"""G4 as a rule: the list equals what a call would allow; unknown and foreign are one answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.domain import refusals
from routing.domain.admission import INFERENCE_PATHS, UNREADABLE, Admitted, admit, model_list
from routing.domain.keys import digest
from routing.domain.refusals import Refusal
from routing.domain.table import Key, Route, RouteTable

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
CHAT = "/v1/chat/completions"
PROJECTS = ("prj_a", "prj_b", "prj_c")
SECRETS = {project: f"slk_{project[-1] * 40}" for project in PROJECTS}
NAMES = ("one", "two", "three", "four")


def table_of(places: set[tuple[str, str]], expires_at: datetime | None = None) -> RouteTable:
    return RouteTable(
        read_at=AT,
        routes=tuple(Route(f"dep_{project}_{name}", project, name) for project, name in sorted(places)),
        keys={digest(secret): Key(f"key_{project}", project, expires_at) for project, secret in SECRETS.items()},
    )


def call(table: RouteTable, project: str, model: str, **changes: str) -> Admitted | Refusal:
    said = {"authorization": f"Bearer {SECRETS[project]}", "method": "POST", "path": CHAT, "model": model, "problem": ""}
    return admit(table, at=AT, **{**said, **changes})


places = st.sets(st.tuples(st.sampled_from(PROJECTS), st.sampled_from(NAMES)))


@given(places=places, project=st.sampled_from(PROJECTS), model=st.sampled_from([*NAMES, "nope"]))
def test_c40_listed_exactly_when_admitted(places: set[tuple[str, str]], project: str, model: str) -> None:
    table = table_of(places)
    verdict = call(table, project, model)
    listed = model_list(table, authorization=f"Bearer {SECRETS[project]}", wanted="", at=AT)
    assert isinstance(listed, dict)
    ids = [one["id"] for one in listed["data"]]  # type: ignore[attr-defined]
    assert ids == sorted(name for owner, name in places if owner == project)
    one = model_list(table, authorization=f"Bearer {SECRETS[project]}", wanted=model, at=AT)
    if model in ids:
        assert isinstance(verdict, Admitted)
        assert verdict.route.deployment_id == f"dep_{project}_{model}"
        assert verdict.key.project_id == project
        assert isinstance(one, dict)
        assert one["id"] == model
    else:
        assert verdict == one == refusals.model_not_found(model)


@pytest.mark.parametrize("path", INFERENCE_PATHS)
def test_every_inference_path_is_admitted_by_post_only(path: str) -> None:
    table = table_of({("prj_a", "one")})
    assert isinstance(call(table, "prj_a", "one", path=path), Admitted)
    assert call(table, "prj_a", "one", path=path, method="GET") == refusals.NO_SUCH_URL


@pytest.mark.parametrize("path", ["/v1/models", "/slots", "/v1/chat/completions/", "/props", "/v1/lora-adapters", ""])
def test_no_other_path_reaches_an_engine(path: str) -> None:
    assert call(table_of({("prj_a", "one")}), "prj_a", "one", path=path) == refusals.NO_SUCH_URL


@given(
    authorization=st.text(max_size=60) | st.text(max_size=50).map(lambda text: f"Bearer {text}"),
    method=st.sampled_from(["GET", "POST", "PUT"]),
    path=st.sampled_from([*INFERENCE_PATHS, "/slots"]),
    model=st.sampled_from(["one", "nope", ""]),
)
def test_without_a_key_nothing_is_said_of_models(authorization: str, method: str, path: str, model: str) -> None:
    verdict = admit(
        table_of({("prj_a", "one")}), authorization=authorization, method=method, path=path, model=model, problem="", at=AT
    )
    assert isinstance(verdict, Refusal)
    assert verdict.status == 401


def test_a_body_without_a_model_says_which_trouble_it_has() -> None:
    table = table_of({("prj_a", "one")})
    assert call(table, "prj_a", "", problem="missing") == refusals.NO_MODEL
    assert call(table, "prj_a", "", problem=UNREADABLE) == refusals.NOT_AN_OBJECT


@pytest.mark.parametrize(
    ("left", "good"), [(timedelta(0), False), (-timedelta(days=1), False), (timedelta(microseconds=1), True)]
)
def test_a_key_is_good_until_its_very_instant(left: timedelta, good: bool) -> None:
    verdict = call(table_of({("prj_a", "one")}, expires_at=AT + left), "prj_a", "one")
    assert isinstance(verdict, Admitted) is good
    if not good:
        assert verdict == refusals.BAD_KEY


@pytest.mark.parametrize("said", ["Bearer {}", "bearer {}", "BEARER  {}", "  Bearer {} "])
def test_the_scheme_is_read_as_http_says(said: str) -> None:
    table = table_of({("prj_a", "one")})
    assert isinstance(call(table, "prj_a", "one", authorization=said.format(SECRETS["prj_a"])), Admitted)


def test_only_a_refusal_that_may_be_news_costs_a_look_into_the_database() -> None:
    table = table_of(set())
    assert [
        refusal.may_be_news
        for refusal in (
            call(table, "prj_a", "one", authorization="Bearer slk_short"),
            call(table, "prj_a", "one", authorization=""),
            call(table, "prj_a", "one", authorization=f"Bearer slk_{'z' * 40}"),
            call(table, "prj_a", "one"),
            call(table, "prj_a", ""),
        )
        if isinstance(refusal, Refusal)
    ] == [False, False, True, True, False]


def test_every_refusal_has_the_shape_of_an_openai_error() -> None:
    known = [value for value in vars(refusals).values() if isinstance(value, Refusal)] + [refusals.model_not_found("x")]
    assert len(known) >= 7
    for refusal in known:
        assert set(refusal.body["error"]) == {"message", "type", "param", "code"}
        assert 400 <= refusal.status < 600
        assert (refusal.retry_after is not None) == (refusal.status == 503)
