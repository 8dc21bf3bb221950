# make demo   shows one faithful and one unfaithful port
# make test   runs the tests
# make check  runs the linter, the formatter, the type checker and the tests
# make benchmarks   writes the tables of docs/benchmarks.md from samples (30 minutes)
# make dist   builds the wheel and the source distribution into dist/

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help environment demo test check dist benchmarks benchmarks-full clean

# python3.11 where it runs, else python3; MindSpore 2.10 has wheels for 3.10, 3.11 and 3.12.
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
BIN := .venv/bin
# A file's tests stay in one process: they share what it sets up.  Files in their order: those with
# few tests are often the long ones, and would all come last.  Half as many processes again as
# cores, because tests wait for workers that start; at most four, each holds torch and MindSpore.
# A process that dies fails its test and the others go on: with one restarted, xdist 3.8 never ends.
PARALLEL := --numprocesses $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 ))) \
  --maxprocesses 4 --max-worker-restart=0 --dist loadfile --no-loadscope-reorder
READY := .venv/.ready
# Images of containers set this; each of some hundred processes would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

help:
	@sed -n 's/^# make/make/p' Makefile

environment: $(READY)

# --no-compile: Python compiles what it imports; all of torch and MindSpore takes half a minute.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || { \
	  echo "isograd: $(PYTHON) is not Python 3.10 to 3.12. Give one: make PYTHON=/path/to/python3.11" >&2; \
	  exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "isograd: $(PYTHON) cannot make a virtual environment. Install it: apt-get install python3-venv" >&2; \
	  exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

demo: $(READY)
	@echo "1. A faithful port of ResNet-50: every stage agrees, exit status 0."
	@status=0; $(BIN)/isograd verify examples/resnet50/faithful.toml || status=$$?; \
	  if [ $$status -ne 0 ]; then echo "demo: exit status $$status where 0 was expected" >&2; exit 1; fi
	@echo
	@echo "2. The migration example's ResNet-50: isograd names the first layer that differs, exit status 1."
	@status=0; $(BIN)/isograd verify examples/resnet50/guide.toml || status=$$?; \
	  if [ $$status -ne 1 ]; then echo "demo: exit status $$status where 1 was expected" >&2; exit 1; fi
	@echo
	@echo "Shown: isograd passes the port that is the same network and finds where the other is not."

test: $(READY)
	$(BIN)/python -m pytest -q $(PARALLEL)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(PARALLEL)

benchmarks: $(READY)
	$(BIN)/python benchmarks/make.py

benchmarks-full: $(READY)
	$(BIN)/python benchmarks/make.py --full

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
