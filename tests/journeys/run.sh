#!/usr/bin/env bash
# Makes the journeys of new users, each from an empty directory, with nothing but the wheel and its optional libraries.
# Prints how long each took. With names of journeys, makes only these. PAGES is the documentation, from which a user
# copies code.
#
#   run.sh WHEEL DIRECTORY [JOURNEY]...
set -euo pipefail
journeys=$(cd "$(dirname "$0")" && pwd)
export PAGES=${journeys%/tests/journeys}/docs
wheel=$(realpath "$1")
directory=$2
shift 2

rm -rf "$directory"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

# timed NAME COMMAND...: runs a command, and prints the time. If the command fails, prints its output and exits.
timed() {
    local name=$1 start=$EPOCHREALTIME
    shift
    "$@" >"$directory/$name.log" 2>&1 || {
        cat "$directory/$name.log"
        echo "$name failed" >&2
        exit 1
    }
    awk -v name="$name" -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%-13s %6.1f s\n", name, to - from }'
    grep '^skipped:' "$directory/$name.log" || true
}

python3 -m venv "$directory/environment"
export PATH=$directory/environment/bin:$PATH
timed installation python -m pip install --quiet "$wheel[pandas,plot]"
[ $# -gt 0 ] || set -- student architect database lecturer scheme mqsim
for name in "$@"; do
    mkdir "$directory/$name"
    cd "$directory/$name"
    timed "$name" bash -eu -o pipefail "$journeys/$name.sh"
done
