#!/usr/bin/env python
"""Slipway's command line."""

import importlib
import sys

from django.core.management import execute_from_command_line

from portal.settings.environment import use_settings

if __name__ == "__main__":
    use_settings("portal.settings.web")
    importlib.import_module("portal.celery")
    execute_from_command_line(sys.argv)
