#!/usr/bin/env bash
# Builds the packages of a release from a copy of the files that Git knows, and tries them as a user would. FLOATGATE is
# a program that was built from these files. It writes the completions and the man pages.
#
# wheel     the sdist, and the wheel from it, in DIRECTORY/dist; then the wheel in an empty environment without Rust:
#           the command, its completions and man pages, and the tutorial's first cell
# crates    all published crates, each of which is built from its package, in DIRECTORY/target/package
#
# Prints how long each step took.
#
#   packages.sh DIRECTORY [wheel|crates]
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf "$1"
mkdir -p "$1/source" "$1/dist"
directory=$(cd "$1" && pwd)
[ -z "${FLOATGATE:-}" ] || FLOATGATE=$(realpath "$FLOATGATE")
source=$directory/source
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar --extract -C "$source"
python3 -B scripts/release.py readme "$source/README.md"
cd "$source"
# Nothing of an earlier build is used.
export CARGO_TARGET_DIR=$directory/target

# run NAME COMMAND...: runs a command, and prints the elapsed time and the time of the processors. If the command fails,
# prints its output and exits.
run() {
    local name=$1 TIMEFORMAT='   %R s; processors %U + %S s'
    shift
    echo "== $name"
    time "$@" >"$directory/log" 2>&1 || {
        cat "$directory/log"
        echo "== $name failed"
        exit 1
    }
}

wheel() {
    scripts/shell_files.sh "${FLOATGATE:?expected a program that was built from these files}" \
        crates/wheel/data/data/share
    python3 -m venv "$directory/build"
    run 'maturin' "$directory/build/bin/pip" install 'maturin>=1.8,<2'
    run 'sdist' "$directory/build/bin/maturin" sdist --out "$directory/dist"
    run 'wheel from the sdist' "$directory/build/bin/pip" wheel --no-deps --wheel-dir "$directory/dist" \
        "$directory"/dist/floatgate-*.tar.gz
    ls -l "$directory/dist"

    python3 -m venv "$directory/empty"
    # Programs of this environment, and no others.
    local alone=(env "PATH=$directory/empty/bin")
    cd "$directory/empty"
    run 'installation of the wheel, without Rust' "${alone[@]}" \
        python -m pip install --only-binary :all: "$(ls "$directory"/dist/floatgate-*.whl)"
    run 'a run' "${alone[@]}" floatgate run tiny 'rw=randread number_ios=1k'
    "${alone[@]}" floatgate completions bash | cmp - share/bash-completion/completions/floatgate
    grep -q 'floatgate\\-run' share/man/man1/floatgate.1
    run "the tutorial's first cell" "${alone[@]}" python -c '
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
code = "".join(next(cell["source"] for cell in cells if cell["cell_type"] == "code"))
names = {}
exec(compile(code, "tutorial.ipynb", "exec"), names)
assert names["result"].summary.requests.read.count > 10_000, names["result"]
' "$source/docs/tutorial.ipynb"
    cd "$source"
}

crates() {
    local packages=()
    for name in $(python3 -B scripts/release.py crates); do
        packages+=(--package "$name")
    done
    # Only whether they compile is of interest.
    export CARGO_PROFILE_DEV_DEBUG=0
    run "packages of ${packages[*]}" cargo package --locked --allow-dirty "${packages[@]}"
}

case ${2:-all} in
all)
    wheel
    crates
    ;;
wheel | crates) "$2" ;;
*)
    echo "usage: $0 DIRECTORY [wheel|crates]" >&2
    exit 2
    ;;
esac
