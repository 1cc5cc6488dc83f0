"""The browser of the tests: Debian's Chromium, installed when it is missing and the user is root."""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")


class NoBrowser(RuntimeError):
    """There is no Chromium and it cannot be installed; the message says what to do."""


def chromium() -> str:
    """The path of Chromium. Raises NoBrowser with the package to install when there is none."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    if os.getuid() != 0 or not shutil.which("apt-get"):
        raise NoBrowser("Chromium is missing: install Debian's package `chromium` and run again")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("slipway: installing Debian's chromium", flush=True)
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
    subprocess.run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    path = shutil.which("chromium")
    if path is None:
        raise NoBrowser("Debian's package `chromium` was installed and no `chromium` command is there")
    return path
