"""FEMU's collection in the background, as policies: why its tutorial on write amplification has its figures.

FEMU collects in the background only lines with an eighth of invalid pages. `validation/80-femu.toml` names the source
of the figures.
"""

import pathlib

import pytest

import floatgate as fg

DEVICE = pathlib.Path(__file__).parents[2] / "validation/devices/femu.toml"
WRITES = "rw=randwrite bs=4k iodepth=32 io_size=4g"
AGED = f"rw=write bs=128k ; {WRITES} stonewall=1"
PAGES_OF_A_LINE = 4096


def has_an_eighth(valid):
    """Return whether an eighth of a line with `valid` valid pages is invalid."""
    return valid <= PAGES_OF_A_LINE * 7 // 8


class TwoChances(fg.policies.Victim):
    """Takes a random line if an eighth of it is invalid, and another random one if not."""

    def choose(self, plane, blocks, clock):
        first, second = self.rng.integers(len(blocks), size=2)
        return first if has_an_eighth(blocks.valid[first]) else second


class AnEighth(fg.policies.Trigger):
    """Collects garbage while a line has an eighth of invalid pages."""

    def wants(self, plane):
        return bool(has_an_eighth(plane.blocks["valid"]).any())


def amplification(options, job=WRITES):
    """Return the write amplification of a job on FEMU's drive, after FEMU's preparation."""
    return fg.run(fg.Device(DEVICE).with_options(options), job, precondition=AGED).summary.write_amplification


def test_two_random_choices_give_the_amplification_of_femu():
    assert amplification({"gc.victim": TwoChances}) == pytest.approx(5.087, rel=0.02)


def test_collection_in_the_background_costs_eight_programs():
    # 15 % of over-provisioning. The host is slow enough that collection in the background keeps up.
    logical = int(2**31 / 1.15) // 4096 * 4096
    options = {"gc.trigger": AnEighth, "gc.soft_threshold": 12, "capacity.logical": f"{logical}B"}
    slow = "rw=randwrite bs=4k iodepth=32 number_ios=100k rate_iops=150"
    assert amplification(options, slow) == pytest.approx(8.000, rel=0.01)
