# Two commands on a fresh machine: `make demo` and `make test`. Both set up .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q
# pip would compile on one core; left to the first import it might never be kept (PYTHONDONTWRITEBYTECODE).
COMPILE := $(BIN)/python -m compileall -qq -j 0
# The CPU build of torch; any looser request pulls in gigabytes of GPU packages.
TORCH  := torch==2.13.0

.PHONY: help demo test lint format bench clean chromium
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Two stamps: what a user gets, with photographs to try it on, and everything that development needs.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install --no-compile -e '.[demo]'
	-$(COMPILE) $(VENV)/lib
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install --no-compile $(TORCH) -e '.[train,spice,dev]'
	-$(COMPILE) $(VENV)/lib
	touch $@

demo: $(VENV)/.demo  ## edit captions of real photographs
	$(BIN)/python -m capedit.demo

# The pages are tested in Debian's Chromium: found, or installed where we may; without any, those tests are skipped.
CHROMIUM := command -v chromium || command -v chromium-browser || command -v google-chrome

chromium:
	@($(CHROMIUM)) >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends chromium) \
	|| echo "no Chromium, and none could be installed: the pages will not be tested"

test: $(VENV)/.dev lint chromium  ## lint, types and all tests
	$(COMPILE) src tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.dev  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## the measurements that need no outside data (see benchmarks/README.md)
	$(BIN)/python benchmarks/alignment.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
