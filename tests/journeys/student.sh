# A student needs a figure for a paper: does a policy lower write amplification, and is that more than noise?
cat >figure.py <<'PYTHON'
import floatgate as fg

job = "rw=randwrite bs=4k iodepth=16 number_ios=5k random_distribution=zipf:1.1"
runs = {
    victim: fg.run(fg.Device("tiny", {"gc.victim": victim}), job, precondition="steady", seeds=5)
    for victim in ("greedy", "fifo")
}
comparison = fg.compare(runs)
print(comparison)
fg.plot.style("paper")
fg.plot.save(comparison.plot.metric("write_amplification"), "amplification.pdf")
fg.plot.save(comparison.plot.differences(most=8), "differences.svg")
PYTHON
python figure.py
test -s amplification.pdf
grep -q '<svg' differences.svg
