"""Sweeps on a Dask cluster."""

import os
import signal

import joblib
import pytest
from distributed import Client, LocalCluster

import floatgate as fg
from test_sweep import GRID, JOB

#: Ignores Dask's own warnings.
pytestmark = pytest.mark.filterwarnings("default")


def same(table, expected):
    """Return True if tables are equal, except for the cost of the runs."""
    names = [name for name in expected.column_names if not name.startswith("run.")]
    return table.select(names).equals(expected.select(names))


class Sloppy(fg.policies.Victim):
    """Chooses the block with the fewest valid units, and every second time another one."""

    def __init__(self, every=2):
        self.every = every
        self.asked = 0

    def choose(self, plane, blocks, clock):
        self.asked += 1
        few = blocks["valid"].argsort(kind="stable")
        return int(few[self.rng.integers(len(few) // 2)] if self.asked % self.every == 0 else few[0])


class Rows(fg.policies.Classifier):
    """Every second unit of a plane is hot."""

    def classify(self, write):
        return write.lpn // 8 % 2


def test_policies_and_states_reach_a_cluster():
    space = {"gc.victim": ["greedy", Sloppy], "temperature": ["none", Rows]}

    def sweep(**options):
        # All points of a policy share one state of the device, which is sent to the workers as a file.
        return fg.sweep(space, device="tiny", workload=JOB, seeds=[1, 2], precondition="steady", **options)

    expected = sweep(n_jobs=1)
    assert expected["error"].null_count == expected.num_rows == 8
    amplification = expected["write_amplification"].to_pylist()
    assert len(set(amplification)) == 8, "each policy has its own result"
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert same(sweep(), expected)


def test_rows_survive_the_death_of_a_worker(tmp_path):
    def sweep(**options):
        return fg.sweep(GRID, device="tiny", workload=JOB, seeds=range(1, 5), precondition="steady", **options)

    done = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.run(os.getpid).values())

        def kill(count, total, eta):
            done.append(count)
            if count == 3:
                os.kill(workers[0], signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            table = sweep(store=tmp_path, progress=kill)
    assert done == list(range(1, 17))
    assert len(list(tmp_path.iterdir())) == 16
    expected = sweep(n_jobs=1)
    assert same(table, expected)
