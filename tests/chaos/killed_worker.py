"""A worker process that is killed in the middle of a pass.

``python -m tests.chaos.killed_worker <space> <method> <number> <before|after>``

It kills itself with SIGKILL, as the kernel's out-of-memory killer does: no handler, no finally, no commit after it.
"""

from __future__ import annotations

import os
import signal
import sys

import django


def main(public_id: str, method: str, number: int, when: str) -> None:
    django.setup()
    from fleet.cluster import connect, placed  # noqa: PLC0415 - after setup()
    from fleet.reconcile.spaces import RECONCILER  # noqa: PLC0415
    from portal.work.loop import run_pass  # noqa: PLC0415
    from tests.chaos.interrupted import Interrupted  # noqa: PLC0415

    def killed() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    port = Interrupted(connect("local"), method, number, killed, after=when == "after")
    with placed("local", port):  # type: ignore[arg-type]
        run_pass(RECONCILER, public_id)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
