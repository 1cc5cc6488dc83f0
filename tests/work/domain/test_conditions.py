from datetime import UTC, datetime, timedelta

from portal.work.domain.conditions import Condition, Truth, merged

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_since_stays_while_the_status_does() -> None:
    first = merged([], [Condition("Synced", Truth.FALSE, "A", "one")], NOON)
    second = merged(first, [Condition("Synced", Truth.FALSE, "B", "two")], LATER)
    assert second == [{"type": "Synced", "status": "False", "reason": "B", "message": "two", "since": NOON.isoformat()}]


def test_since_moves_with_the_status_and_unknown_is_a_status() -> None:
    first = merged([], [Condition("Synced", Truth.TRUE)], NOON)
    second = merged(first, [Condition("Synced", Truth.UNKNOWN)], LATER)
    assert second[0]["since"] == LATER.isoformat()


def test_what_is_no_longer_said_goes() -> None:
    first = merged([], [Condition("Synced", Truth.TRUE), Condition("Other", Truth.TRUE)], NOON)
    assert [item["type"] for item in merged(first, [Condition("Synced", Truth.TRUE)], LATER)] == ["Synced"]
