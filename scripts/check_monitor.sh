#!/usr/bin/env bash
# Opens the dashboard of a live device, served by PROGRAM, in a headless browser:
#
#     scripts/check_monitor.sh target/release/floatgate
#
# Installs Chromium with apt-get if it is missing. Fails if that is not possible, because nothing would be checked. With
# FLOATGATE_WITHOUT_BROWSER=1, it prints a warning instead.
set -euo pipefail
cd "$(dirname "$0")/.."

floatgate=${1:?"usage: $0 PROGRAM"}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ -z "${BROWSER:-}" ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    echo 'Chromium is not installed: installing it.'
    { apt-get update -qq && apt-get install -y -qq chromium; } >"$log" 2>&1 || tail -n 3 "$log" >&2
fi

status=0
python3 -B scripts/check_monitor.py "$floatgate" --seconds "${MAX_SECONDS:-240}" || status=$?
if [ "$status" = 3 ] && [ "${FLOATGATE_WITHOUT_BROWSER:-}" = 1 ]; then
    printf '\n*** The dashboard was NOT CHECKED: no browser was found. ***\n\n' >&2
    exit 0
fi
exit "$status"
