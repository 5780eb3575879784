"""Errors, including Ctrl-C."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

import floatgate as fg
from conftest import ROOT
from floatgate.__main__ import main
from floatgate._words import in_python

LONG = "rw=randwrite bs=4k iodepth=32 number_ios=100m"


@pytest.mark.parametrize(
    ("arguments", "options", "kind"),
    [
        (["tiny", "rw=wrong"], {}, fg.WorkloadError),
        (["tiny", "missing.csv"], {}, fg.TraceError),
        (["tiny", ""], {}, fg.WorkloadError),
        (["tiny", "rw=read", "--precondition", "aged=2"], {"precondition": "aged=2"}, fg.PreconditionError),
        (
            ["tiny", "rw=read", "--precondition", "rw=read time_based=1 runtime=1"],
            {"precondition": "rw=read time_based=1 runtime=1"},
            fg.PreconditionError,
        ),
        (["tiny", "rw=read", "--prewrite", "even"], {"prewrite": "even"}, fg.OptionError),
        (
            ["tiny", "rw=randread time_based=1 runtime=10s", "--precondition", "none"],
            {"precondition": "none"},
            fg.SimulationError,
        ),
    ],
)
def test_messages_are_those_of_the_command(arguments, options, kind, command):
    with pytest.raises(kind) as caught:
        fg.run(arguments[0], arguments[1], **options)
    assert isinstance(caught.value, fg.FloatgateError)
    assert in_python(command("run", *arguments, status=2)) == f"error: {caught.value}\n"


def test_options_without_effect_are_refused(tmp_path):
    with pytest.raises(fg.OptionError, match="timeline"):
        fg.run("tiny", "rw=read number_ios=9", timeline=True)
    with pytest.raises(fg.OptionError, match="window"):
        fg.run("tiny", "rw=read number_ios=9", series="0us")
    with pytest.raises(fg.OptionError, match="seed"):
        fg.run("tiny", "rw=read number_ios=9", seed=-1)
    for options, text in [
        ({"seed": 1 << 64}, "seed=18446744073709551616: must be a whole number from 0 to 18446744073709551615"),
        ({"prewrite": "odd"}, "prewrite=odd: invalid value `odd`: expected none, even or allocation"),
        ({"series": "10"}, "series=10: `10` is not a time"),
        ({"timeline": "5ms..1ms", "out": tmp_path / "out"}, "timeline=5ms..1ms: the span must end after its start"),
    ]:
        with pytest.raises(fg.OptionError, match=f"^{text}"):
            fg.run("tiny", "rw=read number_ios=9", **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(fg.OutputError, match="file of that name"):
        fg.run("tiny", "rw=read number_ios=9", out=tmp_path / "file")


def test_a_panic_is_an_exception(capfd):
    with pytest.raises(fg.InternalError, match="out of cheese\nThis is a defect of the simulator") as caught:
        fg._floatgate._provoke_panic("out of cheese")
    assert isinstance(caught.value, RuntimeError)
    assert "panicked" in capfd.readouterr().err


def test_other_threads_run():
    turns = []
    stop = threading.Event()

    def count():
        while not stop.wait(0.001):
            turns.append(time.monotonic())

    other = threading.Thread(target=count)
    other.start()
    start = time.monotonic()
    fg.run("tiny", "rw=randwrite bs=4k iodepth=32 number_ios=200k")
    end = time.monotonic()
    stop.set()
    other.join()
    during = [turn for turn in turns if start < turn < end]
    assert max(np_diff([start, *during, end])) < max(0.5, 0.5 * (end - start))
    assert len(during) > 10


def np_diff(times):
    return [later - earlier for earlier, later in itertools.pairwise(times)]


CODE = """
import floatgate as fg, sys
try:
    {}
except KeyboardInterrupt:
    # Start a new line, because a line of progress may be incomplete.
    print("\\ninterrupted")
    # The next run works.
    print(fg.run("tiny", "rw=read number_ios=100").summary.requests.all.count)
"""


@pytest.mark.parametrize(
    "call",
    [
        f'fg.run("tiny", "{LONG}", progress=lambda part, share: print(part, flush=True))',
        'fg.run("bench-32g", "rw=read", precondition="steady", progress=lambda part, share: print(part, flush=True))',
        'fg.Simulator("bench-32g", precondition="steady", progress=lambda part, share: print(part, flush=True))',
    ],
)
def test_ctrl_c_interrupts_a_call(call):
    with subprocess.Popen([sys.executable, "-c", CODE.format(call)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() in ("running", "preconditioning")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().split()
        assert process.wait() == 0
    assert rest[-2:] == ["interrupted", "100"]
    assert time.monotonic() - start < 20


def test_handlers_of_the_program_are_called():
    def handler(number, frame):
        raise TimeoutError(number)

    before = signal.signal(signal.SIGUSR1, handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(TimeoutError):
            fg.run("tiny", LONG)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


#: Texts of the crates that name an option, with escapes.
_TEXTS = re.compile(r'"((?:[^"\\\n]|\\.)*--[a-z](?:[^"\\\n]|\\.)*)"')


def texts():
    """Texts of the crates of a run that name an option, with numbers in place of what is filled in."""
    crates = [ROOT / "crates" / name / "src" for name in ("array", "core", "report", "run", "sim", "workload")]
    files = [file for crate in crates for file in crate.rglob("*.rs")]
    found = [text for file in files for text in _TEXTS.findall(file.read_text(encoding="utf-8"))]
    assert len(found) > 50
    return [re.sub(r"{\w*(:[^}]*)?}", "7", text) for text in found]


@pytest.mark.parametrize("text", sorted(set(texts())))
def test_no_message_has_an_option_next_to_its_value(text):
    said = in_python(text)
    assert "==" not in said
    assert not re.search(r"\w= (\d|[A-Z]{2}|\"|none|steady|fill|csv|parquet)", said)
    for line in re.findall(r"`floatgate [^`]*`", text):
        assert line in said


def test_rows_of_the_command_name_its_options(capsys, monkeypatch):
    trace = str(ROOT / "examples" / "sqlite-ext4.csv.xz")
    monkeypatch.setattr("sys.argv", ["floatgate", "fleet", "tiny", trace, "--jobs", "1"])
    assert main() == 1
    assert "`--limit N` or `--fit wrap`" in capsys.readouterr().out
    (row,) = fg.fleet([trace], "tiny", n_jobs=1).to_pylist()
    assert '`limit=N` or `fit="wrap"`' in row["error"]
