#!/usr/bin/env bash
# Checks that the workspace compiles with the minimum version of Rust, which is `rust-version` in Cargo.toml: with live
# devices, and the command without them. rustup installs the toolchain if it is missing. If it cannot, prints "skipped:"
# with the reason and succeeds, or fails with MINIMUM_RUST_REQUIRED=1.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if [ -z "$version" ]; then
    # shellcheck disable=SC2016
    printf 'error: Cargo.toml has no line `rust-version = "VERSION"`; add it to [workspace.package]\n' >&2
    exit 1
fi

skip() {
    if [ -n "${MINIMUM_RUST_REQUIRED:-}" ]; then
        printf 'error: Rust %s was not tested: %s\n' "$version" "$1" >&2
        exit 1
    fi
    printf 'skipped: Rust %s was not tested: %s\n' "$version" "$1"
    exit 0
}

command -v rustup >/dev/null || skip 'rustup, which installs it, is missing'
# An installed toolchain needs no network.
if ! rustup run "$version" rustc --version >/dev/null 2>&1; then
    rustup toolchain install "$version" --profile minimal --no-self-update ||
        skip "\`rustup toolchain install $version\` failed, see its message above"
fi

rustup run "$version" cargo check --workspace --locked
rustup run "$version" cargo check --package floatgate --no-default-features --locked
printf 'The workspace compiles with Rust %s.\n' "$version"
