#!/usr/bin/env bash
# Writes reports and a comparison with PROGRAM, and opens them in a headless browser:
#
#     scripts/check_report.sh target/release/floatgate
#
# Installs Chromium with apt-get if it is missing. Fails if that is not possible, because nothing would be checked. With
# FLOATGATE_WITHOUT_BROWSER=1, it prints a warning instead.
set -euo pipefail
cd "$(dirname "$0")/.."

floatgate=${1:?"usage: $0 PROGRAM"}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mixed='rw=randrw rwmixread=70 bs=4k iodepth=32 norandommap=1 number_ios=20k'

# run NAME ARGUMENTS...: runs the program, and prints its output and exits if it fails.
run() {
    local name=$1
    shift
    if ! "$floatgate" run "$@" --out "$scratch/$name" >"$scratch/log" 2>&1; then
        cat "$scratch/log" >&2
        exit 1
    fi
}

run trace hu2011 examples/sqlite-oltp.csv.xz
run tlc tlc-nvme 'rw=randwrite bs=4k iodepth=32 norandommap=1 number_ios=50k' --precondition steady \
    --set geometry.blocks=40 --set capacity.spare=0.2
run fast tiny "$mixed" --precondition fill \
    --set 'mapping.scheme={ fast = { logs = { sequential = 2, random = 6 } } }'
run few tiny 'rw=randrw bs=4k number_ios=10'
run read tiny 'rw=randread bs=4k iodepth=4 number_ios=2k'
run trim tiny 'rw=randtrim bs=4k number_ios=500' 'rw=randwrite bs=4k iodepth=4 fsync=8 number_ios=2k'
run seeds tiny "$mixed" --precondition steady --seeds 3
run fifo tiny "$mixed" --precondition steady --seeds 3 --set gc.victim=fifo
"$floatgate" compare "greedy=$scratch/seeds" "<script>fifo</script>=$scratch/fifo" --out "$scratch/compared.html" \
    >/dev/null

if [ -z "${BROWSER:-}" ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    echo 'Chromium is not installed: installing it.'
    { apt-get update -qq && apt-get install -y -qq chromium; } >"$scratch/log" 2>&1 || tail -n 3 "$scratch/log" >&2
fi

status=0
python3 -B scripts/check_report.py "$scratch/trace/report.html" "$scratch/tlc/report.html" \
    "$scratch/fast/report.html" "$scratch/few/report.html" "$scratch/read/report.html" "$scratch/trim/report.html" \
    "$scratch/seeds/seed-1/report.html" "$scratch/compared.html" || status=$?
if [ "$status" = 3 ] && [ "${FLOATGATE_WITHOUT_BROWSER:-}" = 1 ]; then
    printf '\n*** The reports were NOT CHECKED: no browser was found. ***\n\n' >&2
    exit 0
fi
exit "$status"
