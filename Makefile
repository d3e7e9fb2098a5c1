# Everything here works on a fresh machine with Python 3.11+, git and make; the environment is made in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
TRIALS ?= 300
SEED   ?= 1
SCENARIO ?= scenarios/dcp.toml
PYTEST_ARGS ?=
# Test files that run side by side: two cores each have a trial of their own.
TEST_WORKERS ?= 2
POWER_ARGS ?=
SOUNDNESS_ARGS ?=
# Set it where a campaign that finds violations (exit code 1) has done its work, as in CI.
FINDINGS_OK ?=
# Extra options for pip, such as `--index-url URL` for an internal mirror or torch's index of CPU builds.
PIP_OPTIONS ?=

.PHONY: help fuzz test lint types contract bench power soundness check map clean
.DEFAULT_GOAL := help

help:
	@echo "make fuzz      install, then fuzz $(SCENARIO) with TRIALS=$(TRIALS) SEED=$(SEED)"
	@echo "make test      install with test extras, run the whole suite"
	@echo "make lint      ruff: rules and formatting"
	@echo "make types     mypy --strict"
	@echo "make contract  the layers (import-linter)"
	@echo "make map       write the map of docs/ARCHITECTURE.md anew"
	@echo "make power     hunt every canary; options in POWER_ARGS, as in POWER_ARGS='--seeds 1'"
	@echo "make soundness run every correct target; options in SOUNDNESS_ARGS, as in SOUNDNESS_ARGS='--trials 100'"
	@echo "make bench     python -m benchmarks: a table and JSON"

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
