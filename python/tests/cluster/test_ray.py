"""A sweep on a Ray cluster on this machine, during which a worker dies. `make test-cluster` runs this test."""

import os
import signal
import subprocess

import joblib
import pyarrow.parquet as pq
import ray
from ray.util.joblib import register_ray

import floatgate as fg

GRID = {"gc.victim": ["greedy", "fifo"], "geometry.channels": [2, 4]}
JOB = "rw=randwrite bs=4k iodepth=4 number_ios=5k"


def sweep(**options):
    return fg.sweep(GRID, device="tiny", workload=JOB, seeds=range(1, 5), precondition="steady", **options)


def actors():
    """Return the processes in which Ray runs tasks."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "ray::PoolActor" in line]


def test_rows_survive_the_death_of_a_worker(tmp_path):
    done, killed = [], []

    def kill(count, total, eta):
        done.append(count)
        if count >= 3 and not killed and actors():
            killed.append(actors()[0])
            os.kill(killed[0], signal.SIGKILL)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            table = sweep(store=tmp_path, progress=kill)
    finally:
        ray.shutdown()
    assert killed
    assert done == list(range(1, 17))
    assert len(list(tmp_path.iterdir())) == 16
    expected = sweep(n_jobs=1)
    names = [name for name in expected.column_names if not name.startswith("run.")]
    assert table.select(names).equals(expected.select(names))


def test_policies_and_states_reach_the_workers():
    # A class defined here is pickled by value. A class of a module is pickled by name, and workers lack this folder.
    class Rows(fg.policies.Classifier):
        """Two of four units of a plane are hot, or every second one."""

        def classify(self, write):
            return write.lpn // 16 % 2

    space = {"temperature": ["none", Rows], "geometry.channels": [2, 4]}

    def rows(**options):
        table = fg.sweep(space, device="tiny", workload=JOB, seeds=[1, 2], precondition="steady", **options)
        assert table["error"].null_count == 8
        return table.select([name for name in table.column_names if not name.startswith("run.")])

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            table = rows()
    finally:
        ray.shutdown()
    assert table.equals(rows(n_jobs=1))
    amplification = table["write_amplification"].to_pylist()
    assert all(one != other for one, other in zip(amplification[:4], amplification[4:], strict=True))


def test_the_command_starts_a_cluster(tmp_path):
    (tmp_path / "s.toml").write_text(f'device = "tiny"\nworkload = "{JOB}"\n[space]\ngc.victim = ["greedy", "fifo"]\n')
    command = ["floatgate", "sweep", "s.toml", "--scheduler=ray", "--jobs=2", "--out=s.parquet"]
    # The output also contains messages of Ray.
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    table = pq.read_table(tmp_path / "s.parquet")
    assert table["gc.victim"].to_pylist() == ["greedy", "fifo"]
    assert table["error"].null_count == 2
