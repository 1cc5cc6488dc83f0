"""`make clean`: stop what still runs of this checkout and remove its state folder; built binaries stay."""

from __future__ import annotations

import shutil

import psutil

from deploy.local.state import state_dir


def main() -> None:
    """End every process that names the state folder, then remove the folder."""
    state = state_dir()
    mine = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        if any(str(state) in part for part in process.info["cmdline"] or []):
            mine.append(process)
    for process in mine:
        process.terminate()
    _, alive = psutil.wait_procs(mine, timeout=10)
    for process in alive:
        process.kill()
    shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main()
