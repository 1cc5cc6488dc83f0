"""The access log is read once, in any pieces, and over again after a crash: last use is the same (K8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from portal.audit.domain.actors import Actor
from portal.tenancy.models import unscoped
from portal.work.models import Heartbeat
from routing.models import ApiKey
from routing.services.key_use import key_use_ingest
from routing.services.keys import key_create
from tests.cast import Cast

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


def line(key: str | None, seconds: int) -> bytes:
    at = AT + timedelta(seconds=seconds)
    entry = {"started_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "request_id": f"r{seconds}", "key": key, "status": 200}
    return json.dumps(entry).encode() + b"\n"


def used(key: ApiKey) -> datetime | None:
    with unscoped("a test looks"):
        return ApiKey.objects.get(pk=key.pk).last_used_at


@pytest.fixture
def keys(cast: Cast, act: Callable[[str], Actor]) -> list[ApiKey]:
    return [key_create(actor=act("member"), project=cast.project, name=f"k{n}")[0] for n in range(2)]


def test_the_latest_call_of_each_key_is_kept(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    one, two = keys
    log.write_bytes(line(one.public_id, 5) + line(two.public_id, 1) + line(one.public_id, 3) + line(None, 9))
    assert key_use_ingest(path=log) == 2
    assert (used(one), used(two)) == (AT + timedelta(seconds=5), AT + timedelta(seconds=1))


def test_it_goes_on_where_it_was_and_waits_for_whole_lines(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    one = keys[0]
    half = line(one.public_id, 2)
    log.write_bytes(line(one.public_id, 1) + half[:30])
    assert key_use_ingest(path=log) == 1
    assert used(one) == AT + timedelta(seconds=1)
    with log.open("ab") as more:
        more.write(half[30:])
    assert key_use_ingest(path=log) == 1
    assert used(one) == AT + timedelta(seconds=2)
    assert key_use_ingest(path=log) == 0


def test_reading_all_again_changes_nothing(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(line(keys[0].public_id, 7) + line(keys[0].public_id, 2))
    key_use_ingest(path=log)
    Heartbeat.objects.all().delete()
    assert key_use_ingest(path=log) == 1
    assert used(keys[0]) == AT + timedelta(seconds=7)


def test_a_new_file_under_the_old_name_is_read_from_its_start(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(line(keys[0].public_id, 1) * 3)
    key_use_ingest(path=log)
    log.rename(tmp_path / "access.log.1")
    log.write_bytes(line(keys[0].public_id, 4) * 4)
    assert key_use_ingest(path=log) == 1
    assert used(keys[0]) == AT + timedelta(seconds=4)


def test_a_file_that_was_emptied_is_read_from_its_start(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(line(keys[0].public_id, 1) * 3)
    key_use_ingest(path=log)
    with log.open("r+b") as same:
        same.truncate()
        same.write(line(keys[0].public_id, 4))
    assert key_use_ingest(path=log) == 1


def test_lines_that_cannot_be_read_and_keys_nobody_has_stop_nothing(keys: list[ApiKey], tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(b"\xff{half\n\n[]\nnull\n" + line("key_of_nobody", 1) + b'{"key": "x"}\n' + line(keys[0].public_id, 2))
    key_use_ingest(path=log)
    assert used(keys[0]) == AT + timedelta(seconds=2)


def test_no_file_is_no_error(db: None, tmp_path: Path) -> None:
    assert key_use_ingest(path=tmp_path / "absent.log") == 0
