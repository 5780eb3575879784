#!/usr/bin/env bash
# Measures the performance of a live device over NBD, vhost-user and NVMe: `bench_live.sh PROGRAM EXAMPLES [SECONDS]`.
# PROGRAM is the command `floatgate`, EXAMPLES the directory of nbd_load, vhost_load and nvme_load. Server and client
# run on one processor each, at the highest priority if the user may set it. Prints the targets, the measured values and
# the load of the machine. Does not use a real-time priority: Linux stops such processes for 5 % of each second.
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

# serve ARGUMENTS...: starts a server on processor 0, and waits until it is ready.
serve() {
    # Remove the messages of the previous server: the loop below waits for those of this one.
    rm -f said
    # shellcheck disable=SC2086
    $first taskset -c 0 "$program" serve "$@" --nbd unix:nbd.sock --vhost-user vhost.sock \
        --nvme tcp://127.0.0.1:0 --out out >result 2>said &
    server=$!
    until grep -qs 'Ctrl-C ends' said; do
        kill -0 "$server" || { cat said >&2; exit 1; }
        sleep 0.1
    done
    nvme=$(sed -n 's|^NVMe at tcp://||p' said)
}

# load CLIENT ADDRESS DEPTH [QUEUES [HOW]]: runs a client on processor 1. Sets `iops`, and prints the client's line.
load() {
    # shellcheck disable=SC2086
    line=$($first taskset -c 1 "$examples/$1" "$2" read "$3" "$seconds" 4096 "${4-1}" "${5-}")
    iops=${line%% *}
    printf '  %-16s %s\n' "$1 ${5-}" "$line"
}

end() {
    kill "$server"
    wait "$server"
    server=
}

uptime
echo "--no-delay, 4 KiB reads at depth 32: target 80000 over NBD and over four NVMe queues, 150000 over vhost-user"
serve tiny --no-delay
load nbd_load unix:nbd.sock 32
load vhost_load vhost.sock 32
load nvme_load "$nvme" 32 4
end

echo "60 us reads at depth 1: target p50 within 5 % of 60.0 us over NBD, 10 % over NVMe"
# The server deducts its own time from the last phase at most. Here that is the transfer, 40 us.
serve tiny --set nand.read=20us --set bus.protocol.nv-ddr=102.4MT/s
sed -n 's/^.*in real time; /  /p' said
load nbd_load unix:nbd.sock 1
load vhost_load vhost.sock 1 1 poll
load vhost_load vhost.sock 1 1 block
load nvme_load "$nvme" 1
end

# against DEVICE SPEED CLIENT ADDRESS: loads a device at depth 32, and compares its IOPS with a replay of the record.
against() {
    local live offline
    # The server does not replace the record of the previous device.
    rm -f requests.csv
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

echo "agrawal2008, depth 32, over NBD: target within 5 % of the simulator"
against agrawal2008 1 nbd_load unix:nbd.sock
echo "mqsim-default at 0.25 of real time, depth 32, over vhost-user: target within 5 % of the simulator"
against mqsim-default 0.25 vhost_load vhost.sock
uptime
