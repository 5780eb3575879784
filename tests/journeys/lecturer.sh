# A lecturer shows how garbage collection works: a timing diagram, an explained request, and a policy of a student.
floatgate run tiny 'rw=randwrite bs=4k iodepth=4 number_ios=2k' --precondition steady --out shown \
    --timeline --requests=csv
floatgate explain shown max
floatgate draw shown/timeline.pftrace.gz 0ms..2ms --out diagram.svg
grep -q '<svg' diagram.svg
cat >homework.py <<'PYTHON'
import floatgate as fg

@fg.policies.register("homework")
class Homework(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        return blocks.valid.argmin()

fg.policies.check(fg.Device("tiny", {"gc.victim": "homework"}))
PYTHON
python homework.py
for victim in greedy homework; do
    floatgate run tiny 'rw=randwrite bs=4k iodepth=4 number_ios=2k' --precondition steady --policies homework.py \
        --set gc.victim=$victim --out $victim
done
floatgate compare greedy homework
