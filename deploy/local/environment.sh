#!/bin/sh
# Makes .venv and node_modules from the lock files alone: Python with hashes through uv, front-end parts through npm.
set -eu
PYTHON="${PYTHON:-python3}"
say() { printf 'slipway: %s\n' "$*" >&2; }

"$PYTHON" - <<'PY' || { say "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11 and run again"; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
	say "creating .venv"
	rm -rf .venv
	if ! "$PYTHON" -m venv .venv 2>/dev/null; then
		if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
			say "installing Debian's python3-venv"
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
			"$PYTHON" -m venv .venv
		else
			say "this Python cannot make virtual environments: install Debian's python3-venv and run again"
			exit 1
		fi
	fi
fi
say "installing the locked Python packages"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
.venv/bin/uv pip sync --system-certs --quiet --require-hashes --python .venv/bin/python requirements/bootstrap.txt requirements/dev.txt
say "installing the locked front-end parts"
.venv/bin/python -m deploy.assets
