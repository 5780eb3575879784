"""Log-block mappings against an independent simulation of their logic."""

import itertools
import random

import pytest

import floatgate as fg
from log_block_oracle import Hybrid

PAGES = 16
DEVICE = {"geometry.pages": PAGES, "geometry.blocks": 32, "geometry.mapping_unit": "page", "capacity.spare": 0.4}
UNIT = 4096
CASES = {
    "bast-4": ("bast", {"own": 4}, {"logs": 4}),
    "bast-12": ("bast", {"own": 12}, {"logs": 12}),
    "fast-1-3": ("fast", {"sequential": 1, "random": 3}, {}),
    "fast-2-12": ("fast", {"sequential": 2, "random": 12}, {}),
    "fast-striped": ("fast", {"sequential": 2, "random": 12}, {"stripe": {"data": 4}}),
    "fast-runs": ("fast", {"sequential": 5, "random": 12}, {"stripe": {"data": 4, "sequential": 1}}),
    "last-runs": (
        "last",
        {"sequential": 3, "hot": 6, "cold": 4},
        {"sequential": "block-start", "hot_window": 200, "stripe": {"data": 2, "sequential": 1}},
    ),
    "last-1-3-3": ("last", {"sequential": 1, "hot": 3, "cold": 3}, {"sequential": "block-start", "hot_window": 40}),
    "last-2-6-4": ("last", {"sequential": 2, "hot": 6, "cold": 4}, {"sequential": "block-start", "hot_window": 200}),
}


def addresses(skew, units, rng):
    """Yield units: uniform, or 80 % of them among the first 20 %, and runs that begin at a logical block."""
    while True:
        if rng.random() < 0.05:
            start = rng.randrange(units // PAGES) * PAGES
            yield from range(start, min(start + rng.randrange(1, 2 * PAGES), units))
        elif skew and rng.random() < 0.8:
            yield rng.randrange(units // 5)
        else:
            yield rng.randrange(units)


def runs(window, units, rng):
    """Return runs of consecutive units that cover all units once, in any order, or up to `window` units early."""
    starts = [0]
    while starts[-1] < units:
        starts.append(min(units, starts[-1] + rng.randrange(1, PAGES // 2)))
    pairs = list(itertools.pairwise(starts))
    return sorted(pairs, key=lambda pair: rng.random() if window is None else pair[0] + rng.random() * window)


def test_places_in_order_need_fewer_copies_than_random_ones():
    scheme, logs, options = CASES["fast-2-12"]
    amplification = {}
    for window in (None, 2 * PAGES):
        device = fg.Device("tiny").with_options(DEVICE | {"mapping.scheme": {scheme: options | {"logs": logs}}})
        simulator = fg.Simulator(device, precondition="none")
        units = device.logical_bytes // UNIT // PAGES * PAGES
        oracle = Hybrid(scheme, units // PAGES + 1, PAGES, logs, options)
        for first, end in runs(window, units, random.Random(7)):
            for unit in range(first, end):
                simulator.submit("write", unit * UNIT, UNIT)
                simulator.advance()
                oracle.write(unit)
        assert simulator.counters()["units_moved"] == oracle.copies
        amplification[window] = 1 + oracle.copies / units
    assert 1 < amplification[2 * PAGES] < amplification[None]


@pytest.mark.parametrize("trims", [0.0, 0.1])
@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize("first", ["data", "log"])
@pytest.mark.parametrize("case", CASES)
def test_merges_are_those_of_an_independent_simulation(case, first, skew, trims):
    scheme, logs, options = CASES[case]
    options = options | {"first_writes": first}
    own = {} if scheme == "bast" else {"logs": logs}
    device = fg.Device("tiny").with_options(DEVICE | {"mapping.scheme": {scheme: options | own}})
    simulator = fg.Simulator(device, precondition="none")
    units = device.logical_bytes // UNIT
    oracle = Hybrid(scheme, units // PAGES + 1, PAGES, logs, options)
    rng = random.Random(f"{case} {skew} {trims}")
    choices = addresses(skew, units, rng)
    for _ in range(6000):
        unit = next(choices)
        trim = rng.random() < trims
        simulator.submit("trim" if trim else "write", unit * UNIT, UNIT)
        simulator.advance()
        (oracle.trim if trim else oracle.write)(unit)
    counters = simulator.counters()
    assert {kind: counters[f"{kind}_merges"] for kind in oracle.merges} == oracle.merges
    assert counters["units_moved"] == oracle.copies
    assert counters["log_blocks_reclaimed"] == len(oracle.associativity)
    assert counters["log_blocks_associativity"] == sum(oracle.associativity)
    assert oracle.merges["full"] > 50
