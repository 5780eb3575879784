"""``floatgate sweep``."""

import os
import pty
import signal
import subprocess
import sys
import time

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import floatgate as fg
from floatgate.__main__ import main

FILE = """
device = "tiny"
workload = "rw=randwrite bs=4k iodepth=4 number_ios=500"
seeds = 2
precondition = "steady"
columns = ["write_amplification"]
[space]
gc.victim = ["greedy", { d-choices = { d = 4 } }]
geometry.channels = [2, 4]
"""


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, text=FILE):
        (tmp_path / "s.toml").write_text(text)
        monkeypatch.setattr("sys.argv", ["floatgate", "sweep", "s.toml", *arguments])
        return main(), *capsys.readouterr()

    return run


def test_the_command_equals_fg_sweep(call, tmp_path):
    status, output, errors = call("--jobs=1", "--out=all.csv")
    assert (status, errors) == (0, "")
    grid = {"gc.victim": ["greedy", {"d-choices": {"d": 4}}], "geometry.channels": [2, 4]}
    job = "rw=randwrite bs=4k iodepth=4 number_ios=500"
    expected = fg.sweep(grid, device="tiny", workload=job, seeds=[1, 2], precondition="steady", n_jobs=1)
    lines = output.splitlines()
    assert lines[0].split() == ["gc.victim", "geometry.channels", "seed", "write_amplification"]
    assert len(lines) == 9
    assert lines[-1].split()[-1] == f"{expected['write_amplification'][-1].as_py():.6g}"
    found = pc.read_csv("all.csv")
    assert found["requests.write.iops"].to_pylist() == expected["requests.write.iops"].to_pylist()
    # A finished sweep runs nothing, also for other columns and another file format.
    assert len(list((tmp_path / "s.sweep").iterdir())) == 8
    status, output, _ = call("--columns=requests.write.iops,wear.blocks.max", "--out=all.parquet", "--jobs=1")
    assert output.splitlines()[0].split()[-2:] == ["write.iops", "wear.blocks.max"]
    assert pq.read_table("all.parquet").num_rows == 8


def test_points_and_sobol(call):
    job = 'workload = "rw=randwrite number_ios=200"\n'
    points = '[[points]]\ndevice = "tiny"\n[[points]]\ndevice = "tiny"\ngc.victim = "fifo"\nprecondition = "none"\n'
    status, output, _ = call("--jobs=1", text=job + points)
    assert status == 0
    assert [line.split()[:3] for line in output.splitlines()[1:]] == [["-", "-", "1"], ["fifo", "none", "1"]]
    sobol = "[sobol]\nn = 4\nseed = 2\n[sobol.space]\n"
    sobol += 'gc.victim = ["greedy", "fifo"]\ncapacity.spare = { from = 0.2, to = 0.4 }'
    status, output, _ = call("--jobs=1", text=f'device = "tiny"\n{job}{sobol}')
    assert status == 0
    spare = fg.Range(0.2, 0.4)
    expected = fg.Sobol({"gc.victim": ["greedy", "fifo"], "capacity.spare": spare}, n=4, seed=2).points()
    assert [line.split()[:2] for line in output.splitlines()[1:]] == [
        [point["gc.victim"], f"{point['capacity.spare']:.6g}"] for point in expected
    ]


def test_failed_runs_are_reported(call):
    status, output, errors = call("--jobs=1", text=FILE.replace("[2, 4]", "[2, 0]"))
    assert status == 0
    assert errors == "4 of 8 runs failed; see the column `error`\n"
    assert "geometry.channels" in output.splitlines()[3]
    assert call("--jobs=1", text=FILE.replace("[2, 4]", "[0]"))[0] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device = 1", "`device` must be a text, not 1"),
        ("devic = 'tiny'", "unknown key `devic` (nearest: device)"),
        ("device = ", "not valid TOML"),
        (FILE.replace("tiny", "tinny"), "error: no built-in device is called `tinny`, did you mean `tiny`?"),
        (FILE.replace("randwrite", "randwrit"), "did you mean `randwrite`?"),
        (FILE.replace("geometry.channels", "capacity.sparse"), "have: capacity.sparse=2: `capacity`: unknown name"),
        ("device = 'tiny'", "one of [space], [[points]] and [sobol], not none"),
        ("points = [1]", "a point must be a table"),
        ("seeds = 0\n[space]\nx = [1]", "expected a number of seeds"),
        ("[sobol]\nn = 4", "n, the number of points"),
        ("[sobol]\nn = 4\n[sobol.space]\nx = { from = 2, to = 1 }", "must not be greater than"),
        ("[sobol]\nn = 4\n[sobol.space]\nx = 3", "must be a list or { from"),
        ("[sobol]\nn = 4\n[sobol.space]\nx = { from = '2us', to = 1 }", "x: Range(least='2us', greatest=1): both ends"),
        ("[sobol]\nn = 4\n[sobol.space]\nx = { from = 1, to = 2, log = 1 }", "x: `log` must be true or false, not 1"),
        ("[space]\ngc.victim = 'greedy'", "gc.victim: a grid needs a list"),
        (
            FILE.replace("write_amplification", "write_amplificaton"),
            "unknown column `write_amplificaton` (nearest: write_amp",
        ),
    ],
)
def test_mistakes(call, text, message):
    status, output, errors = call("--jobs=1", text=text)
    assert (status, output) == (2, "")
    assert errors.startswith("error: ")
    assert message in errors


@pytest.mark.parametrize("command", ["sweep", "optimize"])
def test_an_endless_file_is_a_mistake(command, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["floatgate", command, "/dev/zero"])
    assert main() == 2
    assert capsys.readouterr().err == "error: cannot read /dev/zero: it is longer than the limit of 4 MiB\n"


def test_without_joblib_runs_are_in_one_process(tmp_path):
    (tmp_path / "s.toml").write_text(FILE)
    code = "import sys; sys.modules['joblib'] = None; from floatgate.__main__ import main; sys.exit(main())"
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    found = subprocess.run([sys.executable, "-c", code, "sweep", "s.toml", "--jobs=2"], check=False, **options)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "error: parallel runs need joblib: pip install 'floatgate[joblib]', or set --jobs 1\n"
    found = subprocess.run([sys.executable, "-c", code, "sweep", "s.toml"], check=False, **options)
    assert (found.returncode, len(found.stdout.splitlines())) == (0, 9)
    assert found.stderr == (
        "warning: joblib is not installed, so one process does all runs; for parallel runs: "
        "pip install 'floatgate[joblib]'\n"
    )


def test_a_column_of_no_run_keeps_the_results(call, tmp_path):
    columns = "--columns=geometry.channels,array.config.level,map_cache.hits,gc.log_blocks.writes.full.units"
    status, output, errors = call("--jobs=1", "--out=all.csv", columns)
    assert (status, output) == (2, "")
    assert errors.startswith("error: no run has a value for the column `array.config.level`; the results are kept in s")
    assert (tmp_path / "all.csv").exists()
    assert len(list((tmp_path / "s.sweep").iterdir())) == 8


def test_invalid_options_are_refused_before_any_run(call, tmp_path):
    for arguments, message in [
        (["--out=x.txt"], "must end in .csv or .parquet"),
        (["--out=none/x.csv"], "directory none does not exist"),
        (["--scheduler=http://x"], "expected tcp://"),
        (["--columns=requests.write.iop"], "unknown column `requests.write.iop` (nearest: requests.write.iops"),
        (["--columns=geometry.chanels"], "unknown column `geometry.chanels` (nearest: geometry.channels)"),
    ]:
        status, _, errors = call(*arguments)
        assert (status, message in errors) == (2, True), errors
    assert not (tmp_path / "s.sweep").exists()


def test_a_table_does_not_overwrite_inputs(call, tmp_path):
    trace = "".join(f"0,{8 * index},4096,W,{index}.0\n" for index in range(9))
    (tmp_path / "t.csv").write_text(trace)
    jobs = 'workload = "rw=randwrite bs=4k iodepth=4 number_ios=500"'
    for workload in ('workload = "t.csv"', "workload = ['rw=read', 'trace=t.csv format=spc']"):
        status, _, errors = call("--out=t.csv", text=FILE.replace(jobs, workload))
        assert (status, "t.csv would overwrite t.csv" in errors) == (2, True), errors
    assert (tmp_path / "t.csv").read_text() == trace


def has_workers(process, _):
    """Whether processes of joblib have been started. They take a while until they run anything."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "ppid=,args="], capture_output=True, text=True, check=True).stdout
    return any(line.split()[0] == str(process.pid) and "popen_loky" in line for line in listed.splitlines())


def has_kept(_, place):
    """Whether a run is finished."""
    return bool(list(place.glob("s.sweep/*.parquet")))


@pytest.mark.parametrize(("reached", "least"), [(has_workers, 0), (has_kept, 1)])
def test_ctrl_c_keeps_finished_runs(reached, least, tmp_path):
    (tmp_path / "s.toml").write_text(FILE.replace("number_ios=500", "number_ios=20k").replace("seeds = 2", "seeds = 8"))
    command = [sys.executable, "-m", "floatgate", "sweep", "s.toml", "--jobs=2"]
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Ctrl-C in a terminal reaches all processes of its group.
    process = subprocess.Popen(command, start_new_session=True, **options)
    while not reached(process, tmp_path):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    kept = len(list(tmp_path.glob("s.sweep/*.parquet")))
    assert (process.returncode, output) == (130, "")
    assert errors.startswith("interrupted: ")
    assert "kept in s.sweep; the same command continues" in errors
    assert least <= kept < 32
    assert not list(tmp_path.glob("s.sweep/*.partial"))


def test_progress_is_shown_on_a_terminal(tmp_path):
    (tmp_path / "s.toml").write_text(FILE)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "floatgate", "sweep", "s.toml", "--jobs=1"]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    shown = os.read(ours, 1 << 16).decode()
    assert "sweep: 3 of 8, " in shown
    assert " s left" in shown
    assert shown.rstrip().endswith("sweep: 8 of 8\x1b[K")
