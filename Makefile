# Floatgate. `make help` lists what can be made.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Of the whole workspace, so that libraries have the features that its tests give them, and are built once for both.
BUILD = $(CARGO) build --workspace --bin floatgate --locked
FLOATGATE := $(or $(CARGO_TARGET_DIR),target)/release/floatgate
RUST_FILES = find crates examples fuzz/fuzz_targets -name '*.rs' -print0
# The program of the tests' own profile, and the environment that the Python package is tested in.
PROGRAM = $(abspath $(or $(CARGO_TARGET_DIR),target)/debug/floatgate)
PYTHON = $(or $(CARGO_TARGET_DIR),target)/python
# The extension module of the example, with the features that it was built with for the package.
TEST_EXAMPLE = $(CARGO) build --package floatgate-example-python --features extension-module --locked && \
	scripts/test_example.sh $(PYTHON) $(or $(CARGO_TARGET_DIR),target)
COLUMNS = $(or $(CARGO_TARGET_DIR),target)/columns

# What the demo runs: make demo DEVICE=... TRACE=... OPTIONS=...
DEVICE ?= hu2011
TRACE ?= examples/sqlite-ext4.csv.xz
OPTIONS ?= --precondition steady

# Random cases of each property, operations against the reference model, and seconds of fuzzing for each target, in
# `make soak`.
CASES ?= 5000
CUTS ?= 1000000
OPERATIONS ?= 100000000
FUZZ_SECONDS ?= 60
# Kills and power cuts of a live device, each with a look at every sector, and rounds of fio's own verification.
KILLS ?= 500
# Kills while SQLite and PostgreSQL commit, each.
DATABASE_KILLS ?= 20
# Tests of what most often breaks, for `make check`, and the random devices that they draw.
FAST := model determinism timing bus_order queueing theory write_path fill buffer unloaded commands tidy config
FAST_CASES ?= 150
# Tests of recorded digests, which must be the same in a release build.
RELEASE := determinism model power
DIGESTS := digests acknowledged_write changes_no_answer is_told what_was_flushed

.PHONY: help
help: ## This list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
		while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## Build it, and run the requests of SQLite on ext4 on an aged SSD
	@scripts/prerequisites.sh build
	$(BUILD) --release
	$(FLOATGATE) run $(DEVICE) $(TRACE) $(OPTIONS)

.PHONY: check
check: ## The inner loop: format, lints and the fast tests of the core, in three minutes after a build
	@scripts/prerequisites.sh test
	$(RUST_FILES) | xargs -0 rustfmt --check --edition 2024
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	FLOATGATE_CASES=$(FAST_CASES) $(CARGO) test --workspace --lib $(addprefix --test ,$(FAST)) --locked

.PHONY: test
test: check ## All that must hold: format, lints, documentation, tests, and the dashboard in Chromium
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	python3 -B -m unittest discover --start-directory scripts
	$(CARGO) test --workspace --locked
	FLOATGATE=$(PROGRAM) scripts/test_python.sh $(PYTHON)
	$(TEST_EXAMPLE)
	scripts/check_monitor.sh $(PROGRAM)
	FLOATGATE_CASES=$(FAST_CASES) FLOATGATE_POWER_CUTS=2000 \
		$(CARGO) test --release --package floatgate-core --locked $(addprefix --test ,$(RELEASE)) -- $(DIGESTS)

.PHONY: test-python
test-python: ## The tests of the Python package alone, in an environment below the build directory
	@scripts/prerequisites.sh test
	$(BUILD)
	FLOATGATE=$(PROGRAM) scripts/test_python.sh $(PYTHON)

.PHONY: test-example
test-example: test-python ## The tests of the Python package, and of the example that adds policies to it
	$(TEST_EXAMPLE)

.PHONY: test-cluster
test-cluster: ## Sweeps on a real cluster of Ray, of which a worker dies; installs Ray, 80 MB, below the build directory
	@scripts/prerequisites.sh test
	$(BUILD)
	FLOATGATE=$(PROGRAM) REQUIREMENTS=python/tests/cluster/requirements.txt \
		scripts/test_python.sh $(PYTHON)-cluster python/tests/cluster

.PHONY: check-report
check-report: ## Open reports and a comparison in Chromium: no error, all figures there, dark, printed
	@scripts/prerequisites.sh build
	$(BUILD) --release
	scripts/check_report.sh $(FLOATGATE)

.PHONY: check-monitor
check-monitor: ## Open the dashboard of a live device in Chromium: it moves, keys and buttons work, no error
	@scripts/prerequisites.sh build
	$(BUILD) --release
	scripts/check_monitor.sh $(FLOATGATE)

.PHONY: bench
bench: ## Measure the speed
	@scripts/prerequisites.sh build
	$(CARGO) bench --package floatgate-core --package floatgate-workload --bench speed --bench trace --locked

.PHONY: bench-live
bench-live: ## Measure the live device over NBD and vhost-user, on two idle processors
	@scripts/prerequisites.sh build
	$(BUILD) --release --examples
	scripts/bench_live.sh $(FLOATGATE) $(dir $(FLOATGATE))examples

.PHONY: soak
soak: columns test-cluster ## Test for long: CASES cases, CUTS power cuts, OPERATIONS of the reference model, fuzzing
	@scripts/prerequisites.sh build
	FLOATGATE_CASES=$(CASES) \
		PROPTEST_CASES=$(CASES) FLOATGATE_POWER_CASES=$(CASES) FLOATGATE_POWER_CUTS=$(CUTS) FLOATGATE_KILLS=$(KILLS) \
		FLOATGATE_DEVICES=tiny,x25m $(CARGO) test --release --workspace --locked
	FLOATGATE_SOAK_OPS=$(OPERATIONS) $(CARGO) test --release --workspace --locked --test model -- --nocapture
	python3 -B scripts/database_kills.py $(FLOATGATE) --rounds $(DATABASE_KILLS)
	FLOATGATE=$(FLOATGATE) FLOATGATE_FLEET_MB=800 \
		scripts/test_python.sh $(PYTHON) python/tests/test_fleet.py
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: fuzz
fuzz: ## Fuzz the readers of files with libFuzzer (nightly, cargo-fuzz) for FUZZ_SECONDS each
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: validate
validate: ## Compare with papers, closed forms and other simulators, and write docs/validation.md
	@scripts/prerequisites.sh build
	$(CARGO) run --release --locked --bin floatgate-validate

.PHONY: studies
studies: ## Do the studies of the papers and the tutorial again, and write their pages into docs/
	@scripts/prerequisites.sh build
	scripts/studies.sh $(PYTHON)-release $(or $(CARGO_TARGET_DIR),target)/studies

.PHONY: study-vssim
study-vssim: ## Measure the SSDs of VSSIM's paper live, by fio, and offline, and write docs/studies/vssim.md
	@scripts/prerequisites.sh build
	$(BUILD) --release
	python3 scripts/study_vssim.py --floatgate $(FLOATGATE)

.PHONY: docs
docs: ## Build the site of the documentation below the build directory; broken links are errors
	scripts/docs.sh $(or $(CARGO_TARGET_DIR),target)/docs

.PHONY: columns
columns: ## Check with pyarrow and DuckDB what is written for them; installs both below the build directory
	@scripts/prerequisites.sh build
	$(BUILD) --release
	python3 -m venv $(COLUMNS)
	$(COLUMNS)/bin/python -m pip install --quiet pyarrow duckdb
	$(COLUMNS)/bin/python -B scripts/check_columns.py $(FLOATGATE)

.PHONY: bless
bless: ## Write the generated documents and recorded results again; look at `git diff` afterwards
	@scripts/prerequisites.sh build
	FLOATGATE_BLESS=1 $(CARGO) test --workspace --locked

.PHONY: fmt
fmt: ## Format every Rust file, also those that `cargo fmt` does not find because a macro declares them
	$(RUST_FILES) | xargs -0 rustfmt --edition 2024

.PHONY: clean
clean: ## Delete what was built
	$(CARGO) clean
