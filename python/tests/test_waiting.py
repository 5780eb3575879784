"""Ctrl-C while a call waits for the other end of a pipe."""

import os
import signal
import subprocess
import sys
import time

import pytest

WAITING = """
import floatgate as fg

job = "rw=read number_ios=9"
simulator = fg.Simulator("tiny", precondition="none")
print("waiting", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("other_end", ["absent", "silent"])
@pytest.mark.parametrize(
    "call",
    [
        "fg.run('tiny', 'pipe')",
        "fg.run('tiny', 'read_iolog=pipe')",
        "fg.run('tiny', job, precondition='pipe')",
        "fg.Simulator('tiny', precondition='pipe')",
        "fg.Simulator.load('pipe')",
        "fg.Device('./pipe')",
    ],
)
def test_ctrl_c_ends_a_wait_for_a_writer(call, other_end, tmp_path):
    check(call, other_end, tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        "fg.run('tiny', job + ' write_iolog=pipe')",
        "simulator.save('pipe')",
        "fg.run('tiny', job, out='result')",
    ],
)
def test_ctrl_c_ends_a_wait_for_a_reader(call, tmp_path):
    (tmp_path / "result").mkdir()
    os.mkfifo(tmp_path / "result" / "series.parquet")
    check(call, "absent", tmp_path)


def check(call, other_end, place):
    os.mkfifo(place / "pipe")
    # Linux opens a pipe for both reading and writing without waiting.
    end = os.open(place / "pipe", os.O_RDWR) if other_end == "silent" else None
    command = [sys.executable, "-c", WAITING.format(call=call)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=place) as process:
        try:
            assert process.stdout.readline() == "waiting\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=10) == ("interrupted\n", None)
            assert process.returncode == 0
        finally:
            process.kill()
    if end is not None:
        os.close(end)
