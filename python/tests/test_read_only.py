"""Read-only directories: outputs, stores and temporary directories that cannot be written to are clear errors."""

import os
import subprocess
import sys

import pytest

START = """
import ctypes, os, sys, tempfile, warnings
import floatgate as fg
from floatgate import studies

warnings.simplefilter("ignore")
if os.geteuid() == 0:
    # Permissions do not stop the root user, unless it gives up the capability to override them.
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110
    assert libc.capset(header, sets) == 0
place, other = sys.argv[1:]
JOB = "rw=randwrite bs=4k iodepth=4 number_ios=100"
# Two runs that share a state.
SPACE = {"workload": [JOB, JOB + " iodepth=2"]}
common = {"device": "tiny", "n_jobs": 1}
search = {"objectives": ["write_amplification"], "workload": JOB, "trials": 2, **common}
ran = []
run = fg.sweeping.run
fg.sweeping.run = lambda *arguments, **options: ran.append(arguments) or run(*arguments, **options)
"""

#: Calls by what they write to: a read-only directory, or one for temporary files that is read-only.
CALLS = {
    "run into a new directory": 'fg.run("tiny", JOB, out=place + "/run")',
    "run into the directory": 'fg.run("tiny", JOB, out=place)',
    "save": 'fg.run("tiny", JOB).save(place)',
    "report": 'fg.run("tiny", JOB).report(place + "/page.html")',
    "save a state": 'fg.Simulator("tiny").save(place + "/state.fgstate")',
    "lifetime": 'fg.lifetime("tiny", JOB, until="erases=1", out=place + "/life")',
    "convert": 'fg.Trace(other + "/v.csv", format="alibaba").convert(place + "/c.csv", "msr")',
    "synth": 'fg.Trace(other + "/v.csv", format="alibaba").synth(place + "/job.fio")',
    "log": 'fg.run("tiny", f"{JOB} write_iolog={place}/log")',
    "sweep": 'fg.sweep(SPACE, precondition="steady", store=place, **common)',
    "sweep into a new directory": 'fg.sweep(SPACE, precondition="steady", store=place + "/new", **common)',
    "optimize": 'fg.optimize({"gc.victim": ["greedy"]}, store=place, **search)',
    "fleet of files": 'fg.fleet([other + "/v.csv"], "tiny", store=place, n_jobs=1)',
    "fleet": 'fg.fleet(other + "/v.csv", "tiny", layout="alibaba", store=place, n_jobs=1)',
    "study": 'studies.run("park2015", ["figure-1"], quick=True, jobs=1, out=place + "/study")',
    "temporary states": 'tempfile.tempdir = place; fg.sweep(SPACE, precondition="steady", **common)',
    "temporary volumes": 'tempfile.tempdir = place; fg.fleet(other + "/v.csv", "tiny", layout="alibaba", n_jobs=1)',
    "temporary workloads": (
        'tempfile.tempdir = place; studies.run("park2015", ["figure-1"], quick=True, jobs=1, out=other + "/study")'
    ),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux" and os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_directories_are_clear_errors(tmp_path):
    place, other = tmp_path / "read-only", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    (other / "v.csv").write_text("".join(f"{3 + i % 2},W,{4096 * i},4096,{i}\n" for i in range(100)))
    place.chmod(0o555)
    cases = [
        f"""
try:
    {code}
    print({name!r}, "wrote", sep=": ")
except fg.OutputError as error:
    print({name!r}, f"{{len(ran)}} runs", str(error).replace(chr(10), " "), sep=": ")
finally:
    tempfile.tempdir = None
    ran.clear()
"""
        for name, code in CALLS.items()
    ]
    command = [sys.executable, "-c", START + "".join(cases), str(place), str(other)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=other)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == list(CALLS)
    for line in lines:
        # Nothing runs before the error, and the error names the directory.
        assert ": 0 runs: " in line
        assert str(place) in line
        assert "Permission denied" in line
    assert list(place.iterdir()) == []


FINISHED = """
table = fg.sweep(SPACE, precondition="steady", store=place, **common)
ran.clear()
assert table.equals(fg.sweep(SPACE, precondition="steady", store=place, **common))
os.chmod(place, 0o555)
assert table.equals(fg.sweep(SPACE, precondition="steady", store=place, **common))
assert not ran
"""


@pytest.mark.skipif(sys.platform != "linux" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_finished_sweep_is_read_from_a_read_only_directory(tmp_path):
    (tmp_path / "store").mkdir()
    command = [sys.executable, "-c", START + FINISHED, str(tmp_path / "store"), str(tmp_path)]
    subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "store").chmod(0o755)
