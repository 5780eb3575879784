#!/usr/bin/busybox sh
# The first program of the guest. Its settings are files in /floatgate: `front` and `device`, `port` for the NBD
# client, `sector` for its logical blocks if these are not 512 B, and `command` if a command is to be run.
busybox=/usr/bin/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root TERM=linux
$busybox mkdir -p /dev /proc /sys /tmp /run /mnt /root /var/tmp
$busybox --install -s
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
chmod 1777 /tmp /var/tmp /dev/shm
ip link set lo up

front=$(cat /floatgate/front)
export SSD=$(cat /floatgate/device)
for module in $(cat /floatgate/modules/common /floatgate/modules/"$front"); do
    [ -d /sys/module/"$module" ] || insmod /floatgate/modules/"$module".ko || echo "floatgate: no module $module"
done

# Prints the path of a virtio port to the host. Ports appear a moment after the module is loaded.
port() {
    for try in $(seq 100); do
        for name in /sys/class/virtio-ports/*/name; do
            if [ "$(cat "$name" 2>/dev/null)" = "$1" ]; then
                echo /dev/"$(basename "$(dirname "$name")")"
                return
            fi
        done
        sleep 0.1
    done
    echo /dev/null
}
status=$(port status)
echo up >"$status"

if [ "$front" = nbd ]; then
    ip link set eth0 up
    ip address add 10.0.2.15/24 dev eth0
    sector=$(cat /floatgate/sector 2>/dev/null)
    nbd-client -persist ${sector:+-block-size "$sector"} -name '' 10.0.2.2 "$(cat /floatgate/port)" "$SSD" \
        >/tmp/nbd-client.log 2>&1 || cat /tmp/nbd-client.log
fi
for try in $(seq 100); do
    [ -b "$SSD" ] && break
    sleep 0.1
done
[ -b "$SSD" ] || { echo "floatgate: no device $SSD"; echo 'lost 1' >"$status"; poweroff -f; }

cd /root || exit
if [ -e /floatgate/command ]; then
    out=$(port out)
    sh /floatgate/command </dev/null >"$out" 2>&1
    result=$?
else
    echo "The SSD is $SSD (\$SSD). Type 'exit' to leave. Ctrl-A X cuts the power."
    setsid cttyhack sh -l
    result=$?
fi
umount -a -r 2>/dev/null
sync
echo "done $result" >"$status"
poweroff -f
