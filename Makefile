# Slipway: `make run` shows the product, `make test` proves it. Both set up all they need.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
BENCHES := approve pages memory
# The type checker loads the settings; nothing is connected to.
CHECK_ENV := SLIPWAY_SECRET_KEY=check SLIPWAY_DATABASE_URL=postgresql://check SLIPWAY_VALKEY_URL=redis://check

.PHONY: help .venv run test check format lock clean openapi screenshots $(addprefix bench-,$(BENCHES))

help: ## List the commands
	@grep -E '^[a-z.%-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 20

.venv: .venv/.complete ## Set up the environment alone

# Its own mark: a half-made .venv, after a failed or stopped run, is completed by the next.
.venv/.complete: requirements/bootstrap.txt requirements/dev.txt package-lock.json deploy/local/environment.sh
	@PYTHON=$(PYTHON) sh deploy/local/environment.sh
	@touch .venv/.complete

run: .venv ## Start everything on this machine and print where to go
	@exec $(BIN)/python -m deploy.local.run

test: check ## Every check and every test (all but the benchmarks)
	@$(BIN)/python -m deploy.local.prepare
	@exec $(BIN)/pytest

check: .venv ## Style, types, templates, import contracts, migrations
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@env $(CHECK_ENV) $(BIN)/mypy
	@$(BIN)/djlint --check --lint --quiet templates
	@$(BIN)/lint-imports
	@$(BIN)/python -m deploy.local.manage makemigrations --check --dry-run

format: .venv ## Put the sources into the house style
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/djlint --reformat --quiet templates || true

openapi: .venv ## Write docs/openapi.yaml from the code
	@$(BIN)/python -m deploy.local.manage spectacular --file docs/openapi.yaml --validate

$(addprefix bench-,$(BENCHES)): bench-%: .venv ## (bench-approve, bench-pages, bench-memory) Print one benchmark's figures
	@exec $(BIN)/python -m bench.$*

screenshots: .venv ## Picture each page at both widths, light and dark, into the state folder
	@exec $(BIN)/pytest -q -m screenshots tests/browser

lock: .venv ## Resolve the requirement files anew, with hashes and no registry addresses
	@for name in bootstrap base dev; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
			requirements/$$name.in -o requirements/$$name.txt || exit 1; done

clean: ## Remove the environment and everything that runs or tests left behind
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m deploy.local.clean; fi
	@rm -rf .venv node_modules .static .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
