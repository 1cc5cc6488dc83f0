"""Takes from the door's access log when each key was last used. Observations, so without audit rows."""

from __future__ import annotations

import os
from pathlib import Path

import structlog
from django.db import transaction
from django.db.models import Q

from portal.kernel.clock import now
from portal.tenancy.models import unscoped
from portal.work.models import Heartbeat
from routing.domain.access_log import last_uses
from routing.models import ApiKey

_BYTES_PER_PASS = 16 * 1024 * 1024

_log = structlog.get_logger(__name__)


def key_use_ingest(*, path: Path) -> int:
    """Read what the log at ``path`` holds since last time, at most 16 MiB; the number of keys seen in use.

    The place reached is kept with the keys in one transaction (heartbeat row ``access-log``): a crash repeats lines and
    loses none. A file that is another one, or is shorter, is read from its start. Only whole lines are taken.
    """
    try:
        log = path.open("rb")
    except FileNotFoundError:
        return 0
    with log, transaction.atomic(durable=True):
        Heartbeat.objects.get_or_create(name="access-log")
        place = Heartbeat.objects.select_for_update().get(name="access-log")
        about = os.fstat(log.fileno())
        start = _start(place.detail, inode=about.st_ino, size=about.st_size)
        log.seek(start)
        read = log.read(_BYTES_PER_PASS)
        whole = read[: read.rfind(b"\n") + 1]
        if not whole and len(read) == _BYTES_PER_PASS:
            _log.error("access log holds a line without end, skipped", path=str(path), offset=start)
            whole = read
        used = last_uses(whole.splitlines())
        with unscoped("keys of every project, by what the access log says"):
            for key_id, at in sorted(used.items()):
                ApiKey.objects.filter(Q(last_used_at=None) | Q(last_used_at__lt=at), public_id=key_id).update(
                    last_used_at=at
                )
        place.at = now()
        place.detail = {"inode": about.st_ino, "offset": start + len(whole)}
        place.save(update_fields=["at", "detail"])
    return len(used)


def _start(detail: dict[str, int], *, inode: int, size: int) -> int:
    offset = detail.get("offset", 0)
    return offset if detail.get("inode") == inode and offset <= size else 0
