"""One reading at a time, shared by all who wait; what cannot be read changes nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from django.db import OperationalError

from routing.authz.follower import Follower
from routing.domain.table import Key, Route, RouteTable

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


def table(seconds: int = 0, *routes: Route, keys: dict[str, Key] | None = None) -> RouteTable:
    return RouteTable(read_at=AT + timedelta(seconds=seconds), routes=routes, keys=keys or {})


def test_many_who_want_a_fresh_table_share_one_reading() -> None:
    begun = 0

    async def read() -> RouteTable:
        nonlocal begun
        begun += 1
        return table(begun)

    async def scenario() -> None:
        follower = Follower(read, period_seconds=3600)
        following = asyncio.create_task(follower.follow())
        while follower.table is None:
            await asyncio.wait({following}, timeout=0.01)
        await asyncio.gather(*(follower.fresh(5) for _ in range(100)))
        following.cancel()

    asyncio.run(scenario())
    assert begun == 2


def test_a_reading_under_way_does_not_count_as_fresh() -> None:
    readings: list[asyncio.Future[RouteTable]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        async def read() -> RouteTable:
            readings.append(loop.create_future())
            return await readings[-1]

        follower = Follower(read, period_seconds=3600)
        following = asyncio.create_task(follower.follow())
        await asyncio.wait({following}, timeout=0.02)
        waiting = asyncio.create_task(follower.fresh(5))
        await asyncio.wait({waiting}, timeout=0.02)
        readings[0].set_result(table(1))
        await asyncio.wait({waiting}, timeout=0.5)
        assert not waiting.done()
        assert len(readings) == 2
        readings[1].set_result(table(2))
        await asyncio.wait({waiting}, timeout=1)
        assert waiting.done()
        assert follower.table is not None
        assert follower.table.read_at == AT + timedelta(seconds=2)
        following.cancel()

    asyncio.run(scenario())


def test_waiting_for_a_fresh_table_ends_when_the_database_hangs() -> None:
    async def scenario() -> None:
        async def read() -> RouteTable:
            return await asyncio.get_running_loop().create_future()

        follower = Follower(read)
        following = asyncio.create_task(follower.follow())
        await asyncio.wait_for(follower.fresh(0.05), 2)
        assert follower.table is None
        following.cancel()

    asyncio.run(scenario())


def test_c39_a_failing_reading_brings_no_revoked_key_back() -> None:
    key = Key("key_a", "prj_a")
    answers: list[RouteTable | OperationalError] = [
        table(0, keys={"d": key}),
        table(1),
        OperationalError("gone"),
        OperationalError("gone"),
        table(2),
    ]

    async def read() -> RouteTable:
        answer = answers.pop(0)
        if isinstance(answer, OperationalError):
            raise answer
        return answer

    async def scenario() -> list[bool]:
        follower = Follower(read)
        known = []
        for _ in range(5):
            await follower.refresh()
            assert follower.table is not None
            known.append(follower.table.key("d", AT) is not None)
        assert follower.failures == 2
        return known

    assert asyncio.run(scenario()) == [True, False, False, False, False]


def test_only_other_routes_wake_those_who_hold_a_poll() -> None:
    one = Route("dep_a", "prj_a", "chat")
    answers = [table(0), table(1, keys={"d": Key("k", "p")}), table(2, one)]

    async def read() -> RouteTable:
        return answers.pop(0)

    async def scenario() -> list[bool]:
        follower = Follower(read)
        await follower.refresh()
        woken = []
        for _ in range(2):
            waiting = asyncio.create_task(follower.changed(5))
            await asyncio.wait({waiting}, timeout=0.02)
            await follower.refresh()
            await asyncio.wait({waiting}, timeout=0.1)
            woken.append(waiting.done())
            waiting.cancel()
        return woken

    assert asyncio.run(scenario()) == [False, True]
