#!/usr/bin/env bash
# Opens the dashboard of a live device, served by the program that is given, in a browser without a screen:
#
#     scripts/check_monitor.sh target/release/floatgate
#
# Chromium is installed where it is absent and apt-get may. Without it this fails, for nothing was checked; who wants to
# go on without sets FLOATGATE_WITHOUT_BROWSER=1, and is told so.
set -euo pipefail
cd "$(dirname "$0")/.."

floatgate=${1:?"usage: $0 PROGRAM"}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ -z "${BROWSER:-}" ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    echo 'Chromium is not installed; trying to install it.'
    { apt-get update -qq && apt-get install -y -qq chromium; } >"$log" 2>&1 || tail -n 3 "$log" >&2
fi

status=0
python3 -B scripts/check_monitor.py "$floatgate" --seconds "${SECONDS_AT_MOST:-240}" || status=$?
if [ "$status" = 3 ] && [ "${FLOATGATE_WITHOUT_BROWSER:-}" = 1 ]; then
    printf '\n*** The dashboard was NOT CHECKED: there is no browser. ***\n\n' >&2
    exit 0
fi
exit "$status"
