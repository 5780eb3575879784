#!/usr/bin/env bash
# Builds the program with profile-guided optimization: an instrumented build, training runs, and a build with their
# profile. Fails if the compiler could not use the profile. Without an llvm-profdata for the LLVM of rustc, says so and
# builds without a profile. The last line of the output is the path of the program.
#
# LLVM_PROFDATA can name the llvm-profdata. RUSTFLAGS applies to all builds. Options go to `cargo build`.
#
#   pgo.sh [CARGO OPTION...]
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: //p')
directory=${CARGO_TARGET_DIR:-target}/pgo
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
flags=${RUSTFLAGS:-}

# With a target, RUSTFLAGS does not apply to build scripts and macros, which run in the compiler.
target=
for ((i = 1; i <= $#; i++)); do
    next=$((i + 1))
    case ${!i} in
    --target) target=${!next-} ;;
    --target=*) target=${!i#--target=} ;;
    esac
done
if [ -z "$target" ]; then
    target=$host
    set -- --target "$target" "$@"
fi
program=$directory/$target/release/floatgate

# build RUSTFLAGS OPTION...: builds the program, and keeps the messages of the compiler.
build() {
    local flags=$1
    shift
    RUSTFLAGS=$flags cargo build --package floatgate --bin floatgate --release --locked --target-dir "$directory" "$@" \
        2>&1 | tee "$directory/log" >&2
}

# Prints the llvm-profdata that reads profiles of this rustc.
profdata() {
    local candidate
    for candidate in ${LLVM_PROFDATA:+"$LLVM_PROFDATA"} "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        "llvm-profdata-${llvm%%.*}" llvm-profdata; do
        if "$candidate" --version 2>/dev/null | grep -q "LLVM version ${llvm%%.*}\."; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# train PROGRAM: short runs of what users simulate: reads, writes with garbage collection, other mappings, flash with
# several bits per cell behind a write buffer, and a recorded trace on a device in steady state.
train() {
    local run=("$1" run) random='norandommap=1 bs=4k iodepth=32' full=(--precondition fill)
    local map=("${full[@]}" --set capacity.spare=0.25 --set)
    "${run[@]}" bench-32g "rw=randread $random number_ios=1m"
    "${run[@]}" bench-32g "rw=randwrite $random number_ios=1m"
    "${run[@]}" bench-32g "rw=randwrite $random number_ios=500k" --precondition invalid=0.3
    "${run[@]}" tiny "rw=randwrite $random number_ios=1m" "${full[@]}"
    "${run[@]}" tiny "rw=randrw $random number_ios=300k" "${map[@]}" 'mapping.scheme="dftl"'
    "${run[@]}" tiny "rw=randrw $random number_ios=50k" "${map[@]}" \
        'mapping.scheme={ fast = { logs = { sequential = 2, random = 6 } } }'
    "${run[@]}" tlc-direct "rw=randrw $random size=1g number_ios=200k" --precondition none
    "${run[@]}" tlc-direct 'rw=write bs=128k iodepth=8 size=1g' --precondition none
    "${run[@]}" hu2011 examples/sqlite-ext4.csv.xz --precondition steady
}

# Checks that the hottest functions of the profile are in the program under the same names. Names contain a digest of
# the crate, which a different wrapper of the compiler or a different version changes: the profile would have no effect.
check() {
    local hot known
    hot=$("$profdata" show --topn=200 "$directory/profile" |
        sed -n 's/^ *\(.*;\)\?\([^ ;]*\), max count = [1-9].*/\2/p' | sort -u)
    known=$(nm "$program" | sed 's/.* //' | sort -u | comm -12 - <(echo "$hot") | grep -c . || true)
    echo "pgo: $known of the $(echo "$hot" | grep -c .) hottest functions are in the program (the rest is inlined)" >&2
    if [ "$known" -lt 20 ] || grep -qiE 'profile data (may be|is) out of date|hash mismatch|no profile data' \
        "$directory/log"; then
        echo "error: the profile does not match the program; delete $directory, and do not change the compiler, its" \
            'wrapper or RUSTFLAGS between the builds' >&2
        exit 1
    fi
}

if ! profdata=$(profdata); then
    echo "pgo: there is no llvm-profdata for LLVM ${llvm%%.*}, so the program is built without a profile; install" \
        "one with \`rustup component add llvm-tools\`, or set LLVM_PROFDATA" >&2
    build "$flags" "$@"
    echo "$program"
    exit
fi
rm -rf "$directory/counts"
build "$flags -Cprofile-generate=$directory/counts" "$@"
cp "$program" "$directory/instrumented"
echo 'pgo: training runs' >&2
train "$directory/instrumented" >/dev/null
"$profdata" merge --output="$directory/profile.new" "$directory/counts"
# The compiler depends on the file, so an equal one is kept.
cmp --silent "$directory/profile.new" "$directory/profile" || mv "$directory/profile.new" "$directory/profile"
build "$flags -Cprofile-use=$directory/profile" "$@"
check
echo "$program"
