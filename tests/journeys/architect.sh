# An architect has a data sheet: which SSD reaches these speeds, and what do its latencies look like?
floatgate design --read-mb-s 3500 --write-mb-s 1500 | tee design.txt
grep -q 'channels' design.txt
cat >sheet.toml <<'TOML'
base = "tlc-direct"
name = "sheet"
geometry.channels = 4
nand.read = "50us"
capacity.spare = 0.15
TOML
floatgate device check sheet.toml
floatgate device show sheet.toml >shown.txt
floatgate run sheet.toml 'rw=randread bs=4k iodepth=32 number_ios=20k' --out result
test -s result/report.html
floatgate compare result result --json >/dev/null
