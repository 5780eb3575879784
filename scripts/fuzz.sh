#!/usr/bin/env bash
# Runs every target of fuzz/ for the given number of seconds (`fuzz.sh 60`), starting from the sample traces of the
# tests and the inputs that earlier runs found. If a nightly toolchain or cargo-fuzz is missing, prints a note and runs
# nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}

not_run() {
    printf 'NOT RUN: fuzzing with libFuzzer: %s\n' "$1" >&2
    printf 'The tests trace_fuzz and trace_formats fuzz the same parsers without it.\n' >&2
    exit 0
}

command -v rustup >/dev/null || not_run 'rustup is missing: it selects the nightly toolchain'
rustup toolchain list | grep -q '^nightly' || not_run 'there is no nightly toolchain: rustup toolchain install nightly'
cargo +nightly fuzz --version >/dev/null 2>&1 || not_run 'cargo-fuzz is missing: cargo install cargo-fuzz'

# Sample traces of the tests as inputs of the target `trace`: a byte for the format (none: detect it), one for options.
corpus=fuzz/corpus/trace
mkdir -p "$corpus"
for sample in crates/workload/tests/corpus/trace/*; do
    { printf '\377\003'; cat "$sample"; } >"$corpus/sample-$(basename "$sample")"
done

for target in $(cargo +nightly fuzz list); do
    printf 'fuzzing %s for %s s\n' "$target" "$seconds"
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 \
        -print_final_stats=1
done
