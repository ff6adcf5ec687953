# Everything a clone needs: python3 with venv and pip, make, git. Nothing is installed outside .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.json' -o -name '*.html')
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo check format test fuzz kube-servers test-live faults soak bench bench-live lock clean
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/.tools: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.tools pyproject.toml $(SOURCES)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	@touch $@

setup: $(VENV)/.installed  ## a virtual environment with bayplan and its tools

demo: setup  ## place the shipped example and explain the pod that fits nowhere
	@$(BIN)/bayplan place -f examples/01-first-pod || test $$? -eq 1
	@echo
	@$(BIN)/bayplan explain pod/web-4 -f examples/01-first-pod || test $$? -eq 1

check: setup  ## format, lint, strict types, layers
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_layers.py

format:  ## put the code into shape
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

test: setup  ## all tests that need no server
	$(BIN)/pytest -n 2

ROUNDS ?= 5
fuzz: setup  ## random cases other than those of `make test`, ROUNDS times
	@for round in $$(seq $(ROUNDS)); do \
	  $(BIN)/pytest -n 2 -m "hypothesis and not live" --hypothesis-profile=exploring || exit 1; done

kube-servers: setup  ## find or build (once, with Go) the real servers that test-live needs
	PYTHONPATH=tests $(BIN)/python -m live.kube_binaries

# Exit code 3 says that the servers cannot be had here: then the tests skip and the summary says why.
test-live: setup  ## tests against a real API server
	@if PYTHONPATH=tests $(BIN)/python -m live.kube_binaries; then export REQUIRE_APISERVER=1; else test $$? -eq 3; fi && \
	  $(BIN)/pytest -n 2 -rs -m live tests/live

faults: setup  ## twenty rounds of everything that can go wrong while binding; results in benchmarks/faults.jsonl
	@rm -f benchmarks/faults.jsonl
	BAYPLAN_FAULT_ROUNDS=20 BAYPLAN_FAULT_RECORD=benchmarks/faults.jsonl $(BIN)/pytest -n 2 -m live tests/live/test_faults.py

soak: setup  ## ten minutes of pods coming and going on a real API server
	$(BIN)/python benchmarks/soak.py

bench-live: setup  ## pods bound a second on a real API server, beside kube-scheduler
	$(BIN)/python benchmarks/live.py

bench: setup  ## decisions per second on the benchmark inputs
	$(BIN)/python benchmarks/run.py

lock:  ## the files with pinned versions anew from pyproject.toml
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate pyproject.toml --group dev --group build -o requirements.txt --upgrade
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate pyproject.toml -c requirements.txt -o deploy/requirements.txt --upgrade

clean:  ## forget the environment and what was built
	rm -rf $(VENV) .venv-lock dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
