# Requirements: python3 with venv and pip, make, git. Nothing is installed outside .venv, except by `lock` (.venv-lock), by
# `chromium` (with apt-get) and by `kube-servers` and the targets that need servers (docs/how-to/test-against-a-real-api-server.md).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.json' -o -name '*.html' -o -name '*.js' -o -name '*.css' -o -name '*.svg')
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo check format test site chart fuzz kube-servers oracle module-file agree test-live e2e fuzz-documents faults fleet-faults soak-fleet group-rounds rollouts-live timelines-live soak soak-tenants bench bench-live bench-hostile bench-against shapes call-path lock clean
help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/.tools: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.tools pyproject.toml $(SOURCES)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	@touch $@

setup: $(VENV)/.installed  ## create a virtual environment with bayplan and its development tools

demo: setup  ## place the pods of the first example and explain the one that does not fit
	@$(BIN)/bayplan place -f examples/01-first-pod || test $$? -eq 1
	@echo
	@$(BIN)/bayplan explain pod/web-4 -f examples/01-first-pod || test $$? -eq 1

check: setup  ## check format, lint, strict types and import layers
	$(BIN)/ruff format --check src tests benchmarks tools/site tools/chart tools/release
	$(BIN)/ruff check src tests benchmarks tools/site tools/chart tools/release
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_layers.py

format:  ## format the code and fix what the linter can fix
	$(BIN)/ruff format src tests benchmarks tools/site tools/chart tools/release
	$(BIN)/ruff check --fix src tests benchmarks tools/site tools/chart tools/release

.PHONY: screenshots
screenshots: setup chromium  ## make the pictures of the page for the documentation
	mkdir -p docs/images
	BAYPLAN_SCREENSHOTS=docs/images $(BIN)/pytest tests/web/test_screenshots.py

.PHONY: chromium
chromium:  ## install Debian's Chromium for the tests of the page, where there is none and apt-get works as root
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	  else \
	    echo "there is no Chromium: tests of the page are skipped"; \
	  fi; }

test: setup  ## run all tests that need no server
	$(BIN)/pytest -n 2

chart: setup  ## write the templates of the Helm chart that are made from deploy/
	$(BIN)/python tools/chart/make_chart.py

site: setup  ## build the documentation site into build/site, without the network; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

ROUNDS ?= 5
fuzz: setup  ## run the property tests on new random cases, ROUNDS times
	@for round in $$(seq $(ROUNDS)); do \
	  $(BIN)/pytest -n 2 -m "hypothesis and not live" --hypothesis-profile=exploring || exit 1; done

SEED ?= 1
COUNT ?= 20000
WORKERS ?= 1
fuzz-documents: setup  ## run every command on COUNT damaged documents, those of SEED; failures, shrunk, in fuzz-failures/
	PYTHONPATH=tests $(BIN)/python -m fuzzing $(SEED) $(COUNT) --workers $(WORKERS) $(if $(RECORD),--record $(RECORD))

kube-servers: setup  ## find, or build once with Go, the servers that test-live needs; with VERSION=1.37 the API server of that release
	PYTHONPATH=tests $(BIN)/python -m live.kube_binaries $(VERSION)

oracle: setup  ## answer questions of `decide` KIND (pods) from standard input with the real scheduler's own code
	@PYTHONPATH=tests $(BIN)/python -m live.oracles $(or $(KIND),pods) $(VERSION)

module-file: setup  ## write the module file with which `oracle` and `agree` are built for the Kubernetes VERSION
	@PYTHONPATH=tests $(BIN)/python -m live.module_files $(VERSION)

QUESTIONS ?= 2000
agree: setup  ## put QUESTIONS new questions, those of SEED, to the real schedulers and to Bayplan; [KIND=…] [VERSION=…]
	PYTHONPATH=src:tests $(BIN)/python -m agreeing --questions $(QUESTIONS) --seed $(SEED) \
	  $(if $(KIND),--kind $(KIND)) $(if $(VERSION),--version $(VERSION))

# Exit code 3 means that the servers are not available here: the tests are skipped and the summary says why.
# What fails is run once more by itself: on a busy machine a server may answer later than a test waits. Both outcomes are printed.
test-live: setup  ## run the tests against a real API server
	@if PYTHONPATH=tests $(BIN)/python -m live.kube_binaries; then export REQUIRE_APISERVER=1; else test $$? -eq 3; fi && \
	  { $(BIN)/pytest -n 2 -rs -m live tests/live || \
	    { test $$? -eq 1 && echo "Once more, one at a time:" && $(BIN)/pytest -v -m live --last-failed --last-failed-no-failures none tests/live; }; }

e2e: setup  ## run Kubernetes' end-to-end tests of scheduling with kube-scheduler and with Bayplan as the default scheduler
	PYTHONPATH=tests $(BIN)/python -m live.e2e $(if $(LOGS),--logs $(LOGS))

faults: setup  ## run twenty rounds of every injected fault; results in benchmarks/faults.jsonl
	@rm -f benchmarks/faults.jsonl
	BAYPLAN_FAULT_ROUNDS=20 BAYPLAN_FAULT_RECORD=benchmarks/faults.jsonl $(BIN)/pytest -n 2 -m live tests/live/test_faults*.py

fleet-faults: setup  ## run ten rounds of every fault of a fleet; results in benchmarks/fleet-faults.jsonl
	@rm -f benchmarks/fleet-faults.jsonl
	BAYPLAN_FLEET_FAULT_ROUNDS=10 BAYPLAN_FLEET_FAULT_RECORD=$(CURDIR)/benchmarks/fleet-faults.jsonl $(BIN)/pytest -m live \
	  tests/live/test_karmada_faults.py tests/live/test_karmada_operations.py tests/live/test_karmada_estimators.py \
	  -k "faults or dead_member or aggregated_server or hangs"

group-rounds: setup  ## twenty rounds of two gangs that fit one at a time, and of a kill -9 between two binds; results in benchmarks/group-rounds.json
	PYTHONPATH=tests $(BIN)/python -m live.group_rounds 20

timelines-live: setup  ## play all timelines on a real API server and simulate them, and record how they end
	BAYPLAN_TIMELINES_RECORD=$(CURDIR)/benchmarks/timelines-live.json $(BIN)/pytest -m live tests/live/test_simulation_live.py

rollouts-live: setup  ## thirty random updates under a real kube-controller-manager, predicted from a dump; results in benchmarks/rollouts-live.json
	BAYPLAN_ROLLOUTS=30 BAYPLAN_ROLLOUTS_RECORD=benchmarks/rollouts-live.json $(BIN)/pytest -m live tests/live/test_rollouts_live.py

soak: setup  ## create and delete pods on a real API server for ten minutes
	$(BIN)/python benchmarks/soak.py

soak-fleet: setup  ## create, scale and delete bindings for ten minutes while a cluster flaps
	$(BIN)/python benchmarks/soak_fleet.py

soak-tenants: setup  ## the same for thirty minutes, with pods that use names nobody has used before
	$(BIN)/python benchmarks/soak.py --minutes 30 --rate 20 --tenants

bench-live: setup  ## measure pods bound per second and processor time per pod on a real API server, and the same for kube-scheduler
	$(BIN)/python benchmarks/live.py

bench-hostile: setup  ## measure how long an ordinary pod waits beside one of a megabyte, on a real API server
	$(BIN)/python benchmarks/hostile.py

bench: setup  ## measure decisions per second on the benchmark inputs
	$(BIN)/python benchmarks/run.py

OTHER ?= ../before
bench-against: setup  ## compare the processor time of this tree with that of the tree in OTHER
	cd benchmarks && ../$(BIN)/python against.py $(abspath $(OTHER))

SECONDS ?= 1800
shapes: setup  ## search for inputs that are slow beside the real code or as pods grow, for SECONDS from SEED
	$(BIN)/python benchmarks/shapes.py search --seed $(SEED) --seconds $(SECONDS)

call-path: setup  ## list the functions that `bayplan place` calls for the first example
	$(BIN)/python benchmarks/call_path.py --list

lock:  ## write the files with pinned versions from pyproject.toml
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate pyproject.toml --group dev --group build --group docs -o requirements.txt --upgrade
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate pyproject.toml -c requirements.txt -o deploy/requirements.txt --upgrade
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --group build -c requirements.txt -o deploy/build-requirements.txt --upgrade

clean:  ## delete the virtual environment and build results
	rm -rf $(VENV) .venv-lock dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
