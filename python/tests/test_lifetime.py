"""Lifetimes from Python: the same results as the command, and errors."""

import json
import subprocess

import pytest

import floatgate as fg

JOB = "rw=randwrite bs=4k number_ios=2000"
WORN = {"faults": {}, "nand.endurance": 20}


def test_a_lifetime_equals_that_of_the_command(program, tmp_path):
    life = fg.lifetime(fg.Device("tiny").with_options(WORN), JOB, seed=3)
    arguments = ["--set", "faults.erase_rate=0", "--set", "nand.endurance=20", "--seed", "3", "--until", "worn-out"]
    command = [program, "run", "tiny", JOB, *arguments, "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout)
    for key in ("written", "blocks_erased", "expiry", "wear", "remaining_life", "capacity"):
        assert life.runs[0].to_dict()[key] == told["runs"][0][key]
    assert life.runs[0].complete
    assert life.schema == "floatgate-lifetime-1"
    assert json.loads(life.to_json()) == life.to_dict()


def test_seeds_give_a_confidence_interval(tmp_path):
    calls = []
    device = fg.Device("tiny").with_options({**WORN, "gc.wear": "agrawal"})
    life = fg.lifetime(
        device, JOB, until="first-expiry", seeds=3, out=tmp_path, progress=lambda *told: calls.append(told)
    )
    assert [run.seed for run in life.runs] == [1, 2, 3]
    assert life.written_bytes.n == 3
    assert life.written_bytes.half_width > 0
    assert json.loads((tmp_path / "lifetime.json").read_text()) == life.to_dict()
    assert calls


def test_a_scaled_endurance_shortens_a_lifetime():
    device = fg.Device("tiny").with_options(WORN)
    whole, half = (fg.lifetime(device, JOB, endurance_scale=scale).runs[0].written.bytes for scale in (1, 0.5))
    assert 0.4 < half / whole < 0.6


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"until": "never"}, fg.OptionError, "expected worn-out"),
        ({"seeds": 0}, fg.OptionError, "expected a number of seeds"),
        ({"endurance_scale": 0}, fg.OptionError, "expected a number above 0"),
        ({"workload": "rw=read bs=4k"}, fg.FloatgateError, "writes nothing"),
    ],
)
def test_invalid_lifetimes_are_errors(options, error, said):
    device = fg.Device("tiny").with_options(WORN)
    with pytest.raises(error, match=said):
        fg.lifetime(device, options.pop("workload", JOB), **options)
