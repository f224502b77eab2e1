# Two commands matter: `make demo` and `make test`. Each sets up its own virtual environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 2

.PHONY: demo test lint quick bench page docs package clean java

demo: $(VENV)/.demo
	$(BIN)/sfumato demo
	@echo "Here python and sfumato live in $(VENV); for this shell: source $(BIN)/activate"

test: $(VENV)/.test lint java
	$(BIN)/python -m pytest -n $(JOBS)

quick: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

# The tests on a real cluster of Spark need it; without it they are skipped, each with its reason.
java:
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null || echo "There is no Java (17 or later), and the tests on Spark will be skipped. On Debian and Ubuntu: apt-get install default-jre-headless; on macOS: brew install openjdk@17; else set JAVA_HOME."

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	PYTHONPATH=docs $(BIN)/python -m site_builder

package:
	PYTHON=$(PYTHON) bash .ci/package

bench: $(VENV)/.bench
	$(BIN)/python bench/noise.py
	$(BIN)/python bench/end_to_end.py

page:
	cd page && npm ci --no-fund --no-audit && npm test && npm run build

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("sfumato needs Python 3.11 or newer; set PYTHON=python3.x" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot]'
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@ $(VENV)/.demo

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'  # shown beside, where they install
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo build site
