"""Commands on a Dask cluster. `make test-cluster` runs these tests."""

import subprocess

import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

import floatgate as fg

JOB = "rw=randwrite bs=4k iodepth=4 number_ios=500"

#: Ignores Dask's own warnings.
pytestmark = pytest.mark.filterwarnings("default")

FILE = f"""
device = "tiny"
workload = "{JOB}"
[space]
gc.victim = ["greedy", "fifo"]
"""


def test_commands_on_a_cluster(tmp_path, script):
    def call(*arguments):
        done = subprocess.run([script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    (tmp_path / "s.toml").write_text(FILE)
    (tmp_path / "volumes.csv").write_text("".join(f"{i % 3},W,{4096 * i},4096,{i}\n" for i in range(300)))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        at = f"--scheduler={cluster.scheduler_address}"
        call("sweep", "s.toml", "--out=s.parquet", at)
        call("fleet", "tiny", "volumes.csv", "--layout=alibaba", "--store=fleet", "--out=f.parquet", at)
    expected = fg.sweep({"gc.victim": ["greedy", "fifo"]}, device="tiny", workload=JOB, n_jobs=1)
    table = pq.read_table(tmp_path / "s.parquet")
    names = [name for name in expected.column_names if not name.startswith("run.")]
    assert table.select(names).equals(expected.select(names))
    expected = fg.fleet(tmp_path / "volumes.csv", "tiny", layout="alibaba", n_jobs=1)
    assert pq.read_table(tmp_path / "f.parquet").equals(expected)


def test_a_missing_scheduler_is_an_error(tmp_path, script):
    (tmp_path / "s.toml").write_text(FILE)
    # No scheduler listens on port 1.
    command = [script, "sweep", "s.toml", "--scheduler=tcp://127.0.0.1:1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no Dask scheduler at tcp://127.0.0.1:1" in done.stderr
