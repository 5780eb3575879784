# Floatgate. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Build the whole workspace, so that libraries have the same features as in tests and are built only once.
BUILD = $(CARGO) build --workspace --bin floatgate --locked
# Profile of the program for the demo and for tests in a browser. `dev` is what `make test` has built.
PROFILE ?= release
FLOATGATE := $(or $(CARGO_TARGET_DIR),target)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/floatgate
RUST_FILES = find crates examples fuzz/fuzz_targets -name '*.rs' -print0
# Finds the path of the core's benchmark in the messages of Cargo.
EXECUTABLE = sed -n '/core.benches.speed/s/.*"executable":"\([^"]*speed[^"]*\)".*/\1/p'
# Program in the profile of the tests, and environment for the tests of the Python package.
PROGRAM = $(abspath $(or $(CARGO_TARGET_DIR),target)/debug/floatgate)
PYTHON = $(or $(CARGO_TARGET_DIR),target)/python
# Tests of the example, with the extension module features of the package.
TEST_EXAMPLE = $(CARGO) build --package floatgate-example-python --features extension-module --locked && \
	scripts/test_example.sh $(PYTHON) $(or $(CARGO_TARGET_DIR),target)
COLUMNS = $(or $(CARGO_TARGET_DIR),target)/columns
JOURNEYS = $(or $(CARGO_TARGET_DIR),target)/journeys
PROSE = $(or $(CARGO_TARGET_DIR),target)/prose
WORKFLOWS = $(or $(CARGO_TARGET_DIR),target)/workflows

# Settings of the demo: make demo DEVICE=... TRACE=... OPTIONS=...
DEVICE ?= hu2011
TRACE ?= examples/sqlite-ext4.csv.xz
OPTIONS ?= --precondition steady

# Set to 1, `make check-release` takes the program of `make pgo`.
PGO ?=

# Set to 1, `make validate`, `studies`, `fidelity` and `artifact` do small runs. Pages of studies stay as they are.
QUICK ?=

# Settings of `make soak`: random cases per property, power cuts, operations against the reference model, and seconds of
# fuzzing per target.
CASES ?= 5000
CUTS ?= 1000000
OPERATIONS ?= 100000000
FUZZ_SECONDS ?= 60
# Kills and power cuts of a live device, each followed by a check of all sectors, and rounds of fio's verification.
KILLS ?= 500
# Kills during commits, for each of SQLite and PostgreSQL.
DATABASE_KILLS ?= 20
# Tests for `make check`, which fail most often.
FAST := model determinism mechanisms tidy config
# Tests of the papers' figures in `mechanisms`, a third of its time, which only `make test` runs.
SLOW := parallelism::
# Random devices of the first kind, and power cuts per property, in `make check` and `make test`. `make digests` runs
# each device with a recorded digest, and `cargo test` draws 1,500 devices.
TEST_CASES ?= 50
TEST_CUTS ?= 1000
# Property tests draw the same values in each run, so that no change fails for another reason. `make soak` and `cargo
# test` draw others each time.
SEEDED := PROPTEST_RNG_SEED=1

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
		while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## Build Floatgate and replay a trace of SQLite on an aged SSD
	@scripts/prerequisites.sh build
	$(BUILD) --profile $(PROFILE)
	$(FLOATGATE) run $(DEVICE) $(TRACE) $(OPTIONS)

.PHONY: lint
lint: ## Check formatting and lints
	@scripts/prerequisites.sh test
	$(RUST_FILES) | xargs -0 rustfmt --check --edition 2024
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: check
check: lint ## Check formatting and lints, and run the fast tests
	$(SEEDED) FLOATGATE_CASES=$(TEST_CASES) $(CARGO) test --workspace --lib $(addprefix --test ,$(FAST)) --locked -- \
		$(addprefix --skip ,$(SLOW))

.PHONY: test
test: lint ## Run all checks: formatting, lints, documentation, tests, dashboard
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	scripts/check_prose.sh $(PROSE)
	scripts/check_workflows.sh $(WORKFLOWS)
	python3 -B -m unittest discover --start-directory scripts
	$(SEEDED) FLOATGATE_CASES=$(TEST_CASES) FLOATGATE_POWER_CUTS=$(TEST_CUTS) $(CARGO) test --workspace --locked
	FLOATGATE=$(PROGRAM) scripts/test_python.sh $(PYTHON)
	$(TEST_EXAMPLE)
	scripts/check_monitor.sh $(PROGRAM)

.PHONY: digests
digests: ## Compare all random devices with their recorded digests, in debug and release builds
	@scripts/prerequisites.sh build
	FLOATGATE_DIGESTS=all $(CARGO) test --package floatgate-core --test model --test power --locked recorded::
	FLOATGATE_DIGESTS=all $(CARGO) test --package floatgate-core --test model --test power --locked --release recorded::

.PHONY: prose
prose: ## Check the spelling of all texts, and the messages of new commits
	scripts/check_prose.sh $(PROSE)

.PHONY: test-python
test-python: ## Test the Python package in an environment in the build directory
	@scripts/prerequisites.sh test
	$(BUILD)
	FLOATGATE=$(PROGRAM) scripts/test_python.sh $(PYTHON)

.PHONY: test-example
test-example: test-python ## Test the Python package and the example that adds policies to it
	$(TEST_EXAMPLE)

.PHONY: test-cluster
test-cluster: ## Test sweeps on a Ray cluster with a dying worker (installs Ray, 80 MB)
	@scripts/prerequisites.sh test
	$(BUILD)
	FLOATGATE=$(PROGRAM) REQUIREMENTS=python/tests/cluster/requirements.txt \
		scripts/test_python.sh $(PYTHON)-cluster python/tests/cluster

.PHONY: pgo
pgo: ## Build the program with a profile of training runs, for a tenth more speed
	@scripts/prerequisites.sh build
	scripts/pgo.sh

.PHONY: check-release
check-release: ## Check that a release build (PGO=1: `make pgo`) gives the same bytes as the build of the tests
	@scripts/prerequisites.sh build
	$(BUILD)
	$(if $(PGO),,$(BUILD) --release)
	other=$(if $(PGO),$$(scripts/pgo.sh | tail -n 1),$(FLOATGATE)) && \
		python3 -B scripts/check_release.py $(PROGRAM) "$$other"

.PHONY: check-report
check-report: ## Test reports and a comparison in Chromium: errors, figures, dark, print
	@scripts/prerequisites.sh build
	$(BUILD) --profile $(PROFILE)
	scripts/check_report.sh $(FLOATGATE)

.PHONY: check-monitor
check-monitor: ## Test the dashboard of a live device in Chromium: updates, keys, errors
	@scripts/prerequisites.sh build
	$(BUILD) --profile $(PROFILE)
	scripts/check_monitor.sh $(FLOATGATE)

.PHONY: bench
bench: ## Measure the speed of simulation, trace parsing, and policies in Python
	@scripts/prerequisites.sh build
	$(CARGO) bench --package floatgate-core --package floatgate-array --package floatgate-workload \
		--bench speed --bench trace --locked
	scripts/bench_policies.sh $(PYTHON)-release

.PHONY: budget
budget: ## Count instructions, branches and files of a request; BLESS=1 records them
	@scripts/prerequisites.sh build
	program=$$($(CARGO) bench --package floatgate-core --bench speed --locked --no-run --message-format=json | \
		$(EXECUTABLE)) && \
		scripts/budget.py "$$program" $(if $(BLESS),--bless && scripts/budget.py "$$program" --components)

.PHONY: check-budget
check-budget: export CARGO_INCREMENTAL := 0
check-budget: ## Compare the instructions of a request in the build of the tests with the record
	@scripts/prerequisites.sh test
	program=$$($(CARGO) build --workspace --bench speed --locked --message-format=json | $(EXECUTABLE)) && \
		scripts/budget.py "$$program" reads writes collecting attributed-reads --build dev $(if $(BLESS),--bless)

.PHONY: bench-live
bench-live: ## Measure a live device over NBD, vhost-user and NVMe on two idle processors
	@scripts/prerequisites.sh build
	$(BUILD) --release --examples
	scripts/bench_live.sh $(FLOATGATE) $(dir $(FLOATGATE))examples

.PHONY: soak
soak: columns test-cluster ## Test for hours: CASES cases, CUTS power cuts, OPERATIONS, fuzzing
	@scripts/prerequisites.sh build
	FLOATGATE_CASES=$(CASES) FLOATGATE_DAMAGES=every \
		PROPTEST_CASES=$(CASES) FLOATGATE_POWER_CASES=$(CASES) FLOATGATE_POWER_CUTS=$(CUTS) FLOATGATE_KILLS=$(KILLS) \
		FLOATGATE_DEVICES=tiny,x25m $(CARGO) test --release --workspace --locked
	FLOATGATE_SOAK_OPS=$(OPERATIONS) $(CARGO) test --release --workspace --locked --test model -- --nocapture
	$(CARGO) test --release --workspace --tests --locked -- --ignored --nocapture
	python3 -B scripts/database_kills.py $(FLOATGATE) --rounds $(DATABASE_KILLS)
	FLOATGATE=$(FLOATGATE) FLOATGATE_FLEET_MB=800 FLOATGATE_FITS=10 \
		scripts/test_python.sh $(PYTHON) python/tests/test_fleet.py python/tests/test_fit.py
	$(MAKE) journeys
	scripts/fuzz.sh $(FUZZ_SECONDS)
	scripts/minimum_rust.sh

.PHONY: fuzz
fuzz: ## Fuzz with libFuzzer (nightly, cargo-fuzz), FUZZ_SECONDS per target
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: validate
validate: ## Compare with papers and other simulators; write docs/validation.md
	@scripts/prerequisites.sh build
	$(CARGO) run --release --locked --bin floatgate-validate $(if $(QUICK),-- --quick)

.PHONY: studies
studies: ## Repeat the studies and the notebooks, and write their pages to docs/
	@scripts/prerequisites.sh build
	QUICK=$(QUICK) scripts/studies.sh $(PYTHON)-release $(or $(CARGO_TARGET_DIR),target)/studies$(if $(QUICK),-quick)

.PHONY: fidelity
fidelity: ## Compare built-in devices with measured drives; write docs/fidelity.md
	@scripts/prerequisites.sh build
	QUICK=$(QUICK) scripts/studies.sh $(PYTHON)-release $(or $(CARGO_TARGET_DIR),target)/studies$(if $(QUICK),-quick) \
		ssdiq2025

.PHONY: artifact
artifact: ## Repeat all published tables, and print a checklist (QUICK=1: minutes, with small runs)
	python3 -B scripts/artifact.py $(if $(QUICK),--quick)

.PHONY: study-yoo2013
study-yoo2013: ## Measure the SSDs of the VSSIM paper live; write docs/studies/vssim.md
	@scripts/prerequisites.sh build
	$(BUILD) --release
	python3 scripts/study_vssim.py --floatgate $(FLOATGATE)

.PHONY: packages
packages: ## Build all packages from a clean copy, and try them without Rust
	@scripts/prerequisites.sh build
	$(BUILD)
	FLOATGATE=$(PROGRAM) scripts/packages.sh $(or $(CARGO_TARGET_DIR),target)/packages

.PHONY: journeys
journeys: ## Make the journeys of new users from the wheel alone, and time them
	@scripts/prerequisites.sh test
	rm -rf $(JOURNEYS)/dist
	python3 -m pip wheel --quiet --no-deps --wheel-dir $(JOURNEYS)/dist .
	tests/journeys/run.sh $(JOURNEYS)/dist/floatgate-*.whl $(JOURNEYS)/made

.PHONY: container
container: ## Build the container image with buildah, and try it
	scripts/container.sh $(or $(CARGO_TARGET_DIR),target)/container

.PHONY: docs
docs: ## Build the documentation site; broken links are errors
	@scripts/prerequisites.sh build
	$(BUILD)
	FLOATGATE=$(PROGRAM) scripts/docs.sh $(or $(CARGO_TARGET_DIR),target)/docs

.PHONY: columns
columns: ## Check Parquet files and timelines with pyarrow, DuckDB and Perfetto's definitions
	@scripts/prerequisites.sh build
	$(BUILD) --release
	python3 -m venv $(COLUMNS)
	$(COLUMNS)/bin/python -m pip install --quiet pyarrow duckdb perfetto protobuf
	$(COLUMNS)/bin/python -B scripts/check_columns.py $(FLOATGATE)
	$(COLUMNS)/bin/python -B scripts/check_timeline.py $(FLOATGATE)

.PHONY: bless
bless: ## Regenerate documents and recorded results; review `git diff` afterwards
	@scripts/prerequisites.sh build
	FLOATGATE_BLESS=1 $(CARGO) test --workspace --locked
	python3 -B scripts/typed_documents.py

.PHONY: fmt
fmt: ## Format all Rust files, including those declared by macros
	$(RUST_FILES) | xargs -0 rustfmt --edition 2024

.PHONY: clean
clean: ## Delete build artifacts
	$(CARGO) clean
