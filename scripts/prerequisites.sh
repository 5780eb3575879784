#!/usr/bin/env bash
# Checks the prerequisites to build (`prerequisites.sh build`) or to test (`prerequisites.sh test`) Floatgate, and
# prints the command that installs a missing one. For `test`, it installs rustfmt and clippy with rustup, and the NBD
# clients and the emulator for tests of live devices, and valgrind, with apt-get, if these are available.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# missing MESSAGE COMMAND...: prints what is missing and the commands that install it, one per line, and exits.
missing() {
    printf '\nerror: %s\n' "$1" >&2
    printf 'To install it:\n' >&2
    shift
    printf '    %s\n' "$@" >&2
    exit 1
}

# Prints the command that installs system packages, given their names on Debian ($1), Fedora ($2) and Alpine ($3).
packages() {
    if command -v dnf >/dev/null; then
        echo "dnf install -y $2        (as root, or with sudo)"
    elif command -v apk >/dev/null; then
        echo "apk add $3        (as root)"
    else
        echo "apt-get update && apt-get install -y $1        (as root, or with sudo)"
    fi
}

rustup_install="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile default"

check_rust() {
    if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
        if [ -x "$HOME/.cargo/bin/cargo" ]; then
            # shellcheck disable=SC2016  # to be expanded by the reader's shell
            missing 'Rust is installed, but not on the PATH.' '. "$HOME/.cargo/env"'
        fi
        # shellcheck disable=SC2016
        missing 'Rust is not installed (cargo or rustc was not found).' "$rustup_install" '. "$HOME/.cargo/env"'
    fi
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! found=$(rustc --version 2>"$scratch/log"); then
        cat "$scratch/log" >&2
        missing 'rustc does not run; its message is above.' 'rustup default stable'
    fi
    found=${found#rustc }
    found=${found%%[!0-9.]*}
    if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        if command -v rustup >/dev/null; then
            missing "rustc $found is too old: $wanted or later is needed." \
                'rustup update stable && rustup default stable'
        fi
        # shellcheck disable=SC2016
        missing "rustc $found is too old: $wanted or later is needed." "$rustup_install" '. "$HOME/.cargo/env"'
    fi
}

check_linker() {
    echo 'fn main() {}' >"$scratch/probe.rs"
    if ! rustc --out-dir "$scratch" "$scratch/probe.rs" >"$scratch/log" 2>&1; then
        tail -n 5 "$scratch/log" >&2
        missing 'rustc cannot link a program: the C compiler (gcc) or the C library (libc6-dev) is missing.' \
            "$(packages 'gcc libc6-dev' 'gcc glibc-devel' 'gcc musl-dev')"
    fi
    printf '#include <stdlib.h>\nint main(void) { return 0; }\n' >"$scratch/probe.c"
    if ! "${CC:-cc}" -o "$scratch/probe-c" "$scratch/probe.c" >"$scratch/log" 2>&1; then
        tail -n 5 "$scratch/log" >&2
        missing "the C compiler (${CC:-cc}) does not work: the decompression libraries need it." \
            "$(packages 'gcc libc6-dev' 'gcc glibc-devel' 'gcc musl-dev')"
    fi
}

check_components() {
    if cargo fmt --version >/dev/null 2>&1 && rustfmt --version >/dev/null 2>&1 &&
        cargo clippy --version >/dev/null 2>&1; then
        return
    fi
    if command -v rustup >/dev/null && rustup component add rustfmt clippy; then
        return
    fi
    missing 'rustfmt or clippy is not installed.' \
        'rustup component add rustfmt clippy' \
        "or, for the system's Rust: $(packages 'rustfmt rust-clippy' 'rustfmt clippy' 'rust-clippy')"
}

check_python() {
    if ! command -v python3 >/dev/null; then
        missing 'Python 3 is not installed; the scripts and their tests need it.' "$(packages python3 python3 python3)"
    fi
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        missing "$(python3 --version) is too old: 3.11 or later is needed." \
            "$(packages python3.11 python3.11 python3)" 'and make it the first python3 on the PATH'
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        missing 'Python has no venv or pip: the tests of the Python package need both.' \
            "$(packages python3-venv python3-pip 'python3 py3-pip')"
    fi
}

# Clients for tests of live devices, and valgrind, which counts instructions. Their absence is an error, because the
# tests would check nothing.
check_clients() {
    local client absent=
    for client in nbdinfo nbdcopy nbdsh qemu-io qemu-img fio qemu-system-x86_64 valgrind; do
        command -v "$client" >/dev/null || absent="$absent $client"
    done
    [ -n "$absent" ] || return 0
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        echo "installing libnbd-bin, python3-libnbd, qemu-utils, fio, qemu-system-x86 and valgrind, for$absent"
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends libnbd-bin python3-libnbd \
            qemu-utils fio qemu-system-x86 valgrind; } >"$scratch/log" 2>&1 && return 0
        tail -n 3 "$scratch/log" >&2
    fi
    missing "Programs for tests are not installed:$absent." \
        "$(packages 'libnbd-bin python3-libnbd qemu-utils fio qemu-system-x86 valgrind' \
            'libnbd python3-libnbd qemu-img fio qemu-system-x86 valgrind' \
            'libnbd qemu-img fio qemu-system-x86_64 valgrind')"
}

check_rust
check_linker
case $purpose in
build) ;;
test)
    check_components
    check_python
    check_clients
    ;;
*)
    echo "usage: $0 [build|test]" >&2
    exit 2
    ;;
esac

# Before the long build, so that a machine without network access fails early.
if ! cargo fetch --locked --quiet; then
    missing 'the libraries in Cargo.lock could not be fetched; see the message of cargo above.' \
        'cargo fetch --locked        (needs network access, only once)'
fi
