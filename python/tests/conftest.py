"""Fixtures of the tests."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import floatgate as fg

ROOT = Path(__file__).parents[2]

# Processes started in the background by a shell ignore Ctrl-C, and so would all processes started by the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: A workload that causes garbage collection on a small device.
MIXED = "rw=randrw bs=4k iodepth=8 number_ios=3000"


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def script():
    """The command installed by the package."""
    place = Path(sysconfig.get_path("scripts"), "floatgate")
    assert place.is_file(), "the package is not installed"
    return str(place)


@pytest.fixture(scope="session")
def program(script):
    """The program named by FLOATGATE, or else the package's command in a process of its own."""
    return shutil.which(os.environ.get("FLOATGATE", script)) or pytest.fail("FLOATGATE is not a program")


@pytest.fixture
def command(program, tmp_path):
    """Run the program, and return its output."""

    def run(*arguments, status=0):
        done = subprocess.run(
            [program, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


@pytest.fixture(scope="session")
def result():
    """A result with all optional data."""
    return fg.run("tiny", MIXED, precondition="steady", requests=True)


@pytest.fixture
def trace(tmp_path):
    """A small trace in the MSR Cambridge format."""
    lines = [
        f"{128166372003061629 + 1000 * i},host,0,{'Read' if i % 3 else 'Write'},{4096 * i},4096,0" for i in range(500)
    ]
    place = tmp_path / "trace.csv"
    place.write_text("\n".join(lines) + "\n")
    return place


def python(code, **options):
    """Run code in another Python process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)
