#!/usr/bin/env bash
# Measures the live device over NBD and vhost-user: `bench_live.sh PROGRAM EXAMPLES [SECONDS]`, where PROGRAM is the
# command `floatgate` and EXAMPLES the folder of nbd_load and vhost_load. Server and client get a processor each, before
# other processes where that is allowed. Says what is wanted, what was measured, and the load of the machine. No
# real-time priority: Linux stops such processes for a twentieth of each second.
set -euo pipefail

program=$(realpath "$1")
examples=$(realpath "$2")
seconds=${3:-5}
scratch=$(mktemp -d)
cd "$scratch"
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

first=
[ "$(nice -n -20 nice 2>/dev/null)" = -20 ] && first='nice -n -20'

# serve ARGUMENTS...: starts a server on processor 0, and waits until it is there.
serve() {
    # What the last one said is gone before this one says it.
    rm -f said
    # shellcheck disable=SC2086
    $first taskset -c 0 "$program" serve "$@" --nbd unix:nbd.sock --vhost-user vhost.sock --out out >result 2>said &
    server=$!
    until grep -qs 'Ctrl-C ends' said; do
        kill -0 "$server" || { cat said >&2; exit 1; }
        sleep 0.1
    done
}

# load CLIENT ADDRESS DEPTH [HOW]: loads it from processor 1; leaves the requests a second in `iops`, and says the line.
load() {
    # shellcheck disable=SC2086
    line=$($first taskset -c 1 "$examples/$1" "$2" read "$3" "$seconds" 4096 1 "${4-}")
    iops=${line%% *}
    printf '  %-16s %s\n' "$1 ${4-}" "$line"
}

end() {
    kill "$server"
    wait "$server"
    server=
}

uptime
echo "at once, 4 KiB reads at depth 32: wanted 80000 over NBD, 150000 over vhost-user"
serve tiny --no-delay
load nbd_load unix:nbd.sock 32
load vhost_load vhost.sock 32
end

echo "60 us reads at depth 1: wanted p50 within 5 % of 60.0 us over NBD"
# The transfer, 40 us, is the last phase: the host's cost is deducted up to that.
serve tiny --set nand.read=20us --set bus.protocol.nv-ddr=102.4MT/s
sed -n 's/^.*in real time; /  /p' said
load nbd_load unix:nbd.sock 1
load vhost_load vhost.sock 1 poll
load vhost_load vhost.sock 1 block
end

# against DEVICE SPEED CLIENT ADDRESS: loads a device at depth 32, and compares with a replay of what it was asked.
against() {
    local live offline
    serve "$1" --speed "$2" --record requests.csv
    load "$3" "$4" 32
    live=$iops
    end
    offline=$("$program" run "$1" requests.csv --replay depth=32 --precondition fill --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["requests"]["all"]["iops"])')
    python3 -c "
live, offline = $live / $2, $offline
print(f'  live {live:.0f}, simulated {offline:.0f} IOPS: {live / offline - 1:+.1%}')"
}

echo "agrawal2008, depth 32, over NBD: wanted within 5 % of the simulator"
against agrawal2008 1 nbd_load unix:nbd.sock
echo "mqsim-default at a quarter of the clock's speed, depth 32, over vhost-user: wanted within 5 % of the simulator"
against mqsim-default 0.25 vhost_load vhost.sock
uptime
