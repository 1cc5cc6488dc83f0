"""How times, states and bars are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.approvals.domain.states import RequestState
from portal.kernel.clock import frozen
from portal.site.templatetags.slipway import TONES, age, meter, span_text, stamp, state

AT = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "now"), (0, "now"), (1, "now"), (2, "2 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
     (172799, "47 h"), (172800, "2 d"), (8640000, "100 d")],
)  # fmt: skip
def test_an_age_is_told_in_its_largest_sensible_unit(seconds: int, text: str) -> None:
    assert span_text(timedelta(seconds=seconds)) == text


def test_an_age_carries_its_instant_for_the_browser_and_for_people() -> None:
    with frozen(AT + timedelta(minutes=3)):
        shown = age(AT)
    assert shown == (
        '<time datetime="2026-03-29T00:30:00+00:00" title="2026-03-29 00:30:00 UTC" data-age="ago">3 min ago</time>'
    )
    assert "–" in age(None)
    assert "–" in age("not a time")


def test_a_stamp_names_its_zone_on_both_sides_of_the_clock_change() -> None:
    assert "2026-03-29 01:30:00 CET" in stamp(AT, "Europe/Berlin")
    assert "2026-03-29 03:30:00 CEST" in stamp(AT + timedelta(hours=1), "Europe/Berlin")


@pytest.mark.parametrize("word", list(RequestState))
def test_every_request_state_has_a_tone_of_its_own_choice(word: RequestState) -> None:
    assert word.value in TONES
    shown = state(word, "request")
    assert f'data-state="{word.value}"' in shown
    assert "#" in shown  # an icon besides the colour


def test_a_state_nobody_knows_is_shown_as_it_is_and_defused() -> None:
    assert "&lt;b&gt;" in state("<b>")
    assert "state-quiet" in state("<b>")


@pytest.mark.parametrize(
    ("used", "total", "width"), [(0, 8, "0.0"), (2, 8, "25.0"), (8, 8, "100.0"), (9, 8, "100.0"), (3, 0, "0.0")]
)
def test_a_bar_never_leaves_its_track(used: int, total: int, width: str) -> None:
    shown = meter(used, total)
    assert f'width="{width}" height' in shown
    assert ("meter-bad" in shown) == (used > total)
    assert "style=" not in shown
