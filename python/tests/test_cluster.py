"""Sweeps on a cluster of Dask."""

import os
import signal

import joblib
import pytest
from distributed import Client, LocalCluster

import floatgate as fg
from test_sweep import GRID, JOB

#: Dask's own warnings are Dask's.
pytestmark = pytest.mark.filterwarnings("default")


def same(table, expected):
    """Whether tables are equal, but for the time that their making took."""
    names = [name for name in expected.column_names if not name.startswith("run.")]
    return table.select(names).equals(expected.select(names))


def test_a_worker_that_dies_loses_no_row_and_doubles_none(tmp_path):
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
