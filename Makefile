# Everything here works on a fresh machine with Python 3.11+, git and make. The environment is created in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
TRIALS ?= 300
SEED   ?= 1
SCENARIO ?= scenarios/dcp.toml
PYTEST_ARGS ?=
# Processes that run test files side by side: one a core, for two cores.
TEST_WORKERS ?= 2
POWER_ARGS ?=
SOUNDNESS_ARGS ?=
# Set it to accept a campaign that finds violations (exit code 1), as in CI.
FINDINGS_OK ?=
# Extra options for pip, such as `--index-url URL` for an internal mirror, or torch's index of CPU builds.
PIP_OPTIONS ?=

.PHONY: help fuzz test lint types contract bench power soundness check map clean
.DEFAULT_GOAL := help

help:
	@echo "make fuzz       install, then fuzz $(SCENARIO) with TRIALS=$(TRIALS) SEED=$(SEED)"
	@echo "make test       install with the test extras, then run the whole suite; options for pytest in PYTEST_ARGS"
	@echo "make check      lint, types, contract and test"
	@echo "make lint       check rules and formatting (ruff)"
	@echo "make types      check types (mypy --strict)"
	@echo "make contract   check that imports run one way (import-linter)"
	@echo "make map        write the table of packages in docs/ARCHITECTURE.md again"
	@echo "make power      measure how fast each planted bug is found; options in POWER_ARGS, as in POWER_ARGS='--seeds 1'"
	@echo "make soundness  check that correct targets cause no violation; options in SOUNDNESS_ARGS, as in SOUNDNESS_ARGS='--trials 100'"
	@echo "make bench      measure what the harness costs (python -m benchmarks): a table, and JSON"
	@echo "make clean      remove build products and the caches of tools"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e '.[test]'
	@touch $(VENV)/.installed $@

fuzz: $(VENV)/.installed
	$(BIN)/chaosckpt fuzz $(SCENARIO) --trials $(TRIALS) --seed $(SEED) $(if $(FINDINGS_OK),|| test $$? -eq 1)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

contract: $(VENV)/.installed-test
	$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

power: $(VENV)/.installed-test
	$(BIN)/python -m tests.power $(POWER_ARGS)

soundness: $(VENV)/.installed-test
	$(BIN)/python -m tests.power.soundness $(SOUNDNESS_ARGS)

map: $(VENV)/.installed-test
	$(BIN)/python -m tests.architecture

check: lint types contract test

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
