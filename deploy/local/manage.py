"""`python -m deploy.local.manage …`: manage.py on the embedded services, started for the command if need be."""

from __future__ import annotations

import importlib
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    importlib.import_module("tests.stack")
    execute_from_command_line(["manage.py", *sys.argv[1:]])
