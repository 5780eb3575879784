# A database developer attaches a live device: does flushed data survive a power cut, and how long do commits take?
if ! command -v qemu-io >/dev/null; then
    echo 'skipped: qemu-io is not installed'
    exit 0
fi
mkfifo ready
floatgate serve tlc-nvme --nbd unix:ssd.sock --image memory --no-delay --record commits.trace --ready-fd 3 \
    3>ready >served.txt 2>log.txt &
server=$!
read -r <ready
uri='nbd+unix:///?socket=ssd.sock'
for commit in {1..20}; do
    qemu-io -f raw -c "write -P $commit ${commit}M 16k" -c flush "$uri" >>client.txt
done
floatgate ctl power-cut --socket ssd.ctl
for commit in {1..20}; do
    qemu-io -f raw -c "read -P $commit ${commit}M 16k" "$uri" >>read.txt
done
kill "$server"
wait "$server"
test "$(grep -c '^read 16384' read.txt)" = 20
if grep 'verification failed' read.txt; then
    exit 1
fi
grep -q 'flush' served.txt
floatgate trace info commits.trace
