"""Design guide: every number in the paper's text, and the assumptions that lead to it."""

import json

import pytest

import floatgate as fg
from floatgate.__main__ import main

#: Hu et al. 2013, Section 5.2: only interleaving, and 30 ns. Its 94 percent needs pages without spare bytes.
EXAMPLE = {"read_mb_s": 250, "write_mb_s": 240, "cell": "slc", "spare": 0, "cycle": "30ns"}


def ways(**options):
    guide = fg.design(**{"read_mb_s": 250, "write_mb_s": 240, "cell": "slc", "check": False, **options})
    return {way.figure: way for way in guide.ways}


def test_utilizations_of_the_paper():
    # Section 5.1, with the times of Table 2: 2112 bytes at 25 ns.
    found = ways()
    assert round(found["a"].utilization, 3) == 0.725
    assert round(found["e"].utilization, 3) == 0.691
    assert (found["g"].chips, found["g"].utilization) == (2, 1)
    assert (found["h"].chips, found["h"].utilization) == (5, 1)
    # Section 5.2, with 30 ns. Only 2048 bytes give its 94 percent, but then the others are not 72.5 and 69.1.
    found = ways(spare=0, cycle="30ns")
    assert round(found["f"].utilization, 4) == 0.94
    assert [round(found[figure].utilization, 3) for figure in "ae"] == [0.754, 0.761]
    assert round(ways(cycle="30ns")["f"].utilization, 3) == 0.962


def test_formulas_by_hand():
    # X = 52.8 us: X / (X + 200), 2X / (2X + 200), 2X / (X + 200), 4X / (X + 200).
    found = ways()
    expected = {"b": 52.8 / 252.8, "c": 105.6 / 305.6, "d": 105.6 / 252.8, "f": 211.2 / 252.8}
    assert {figure: found[figure].utilization for figure in expected} == pytest.approx(expected)


def test_two_chips_reach_94_percent_and_three_reach_100():
    full = fg.design(**EXAMPLE, check=False)
    assert full.chosen.chips == 3
    assert "Two chips reach 94.0%" in full.notes[0]
    assert "47.0% for writes, so 3 chips" in full.notes[0]
    assert "2 pairs." in full.notes[0]
    paper = fg.design(**EXAMPLE, fill=0.94, check=False)
    assert paper.chosen.chips == 2
    # Formula (4): 17 pins per channel, 68 for four channels.
    assert paper.chosen.pins == 17 * paper.chosen.channels
    assert paper.chosen.channels == paper.chosen.channels_by_formula == 8
    assert (
        fg.design(read_mb_s=133, write_mb_s=125, cell="slc", spare=0, cycle="30ns", fill=0.94, check=False).chosen.pins
        == 68
    )


def test_bit_extension_where_logic_cells_are_scarce():
    # The logic cells of Section 5.2 suffice for four controllers, and 68 + 80 pins are available.
    budget = {"logic_cells": 4, "channel_logic_cells": 1, "pins": 148}
    guide = fg.design(**EXAMPLE, **budget, fill=0.94)
    narrow, wide = guide.options
    assert narrow.missing == ("4 logic cells",)
    assert guide.chosen == wide
    assert (wide.width, wide.page_bytes, wide.channels, wide.logic_cells) == (16, 4096, 4, 4)
    # Two bytes per 30 ns on each of four channels, which are full for reads.
    assert wide.read_mb_s == pytest.approx(4 * 2 / 0.030)
    assert guide.check.passes
    assert guide.check.read_mb_s == pytest.approx(wide.read_mb_s, rel=0.01)
    assert guide.check.write_mb_s == pytest.approx(wide.write_mb_s, rel=0.01)
    none = fg.design(**EXAMPLE, **{**budget, "pins": 20}, fill=0.94, check=False)
    assert none.chosen is None
    assert "no design fits" in str(none)
    with pytest.raises(fg.OptionError, match="no design fits"):
        none.device()


def test_simulation_agrees_with_every_formula():
    guide = fg.design(read_mb_s=250, write_mb_s=240, cell="slc", advanced=["interleave", "multi-plane"])
    for way in guide.ways:
        assert way.simulated == pytest.approx(way.utilization, rel=2e-3), way
    assert guide.check.passes
    # The channels suffice for the data alone, because formula (3) counts spare bytes as data.
    assert guide.chosen.channels == guide.chosen.channels_by_formula == 7
    assert guide.check.read_mb_s == pytest.approx(7 * 40 * 2048 / 2112, rel=0.01)
    assert guide.device().config["geometry"]["channels"] == 7
    assert guide.table().num_rows == 8
    assert guide == fg.design(read_mb_s=250, write_mb_s=240, cell="slc", advanced=["multi-plane", "interleave"])


def test_reads_and_writes_may_have_cycles_of_their_own():
    # X = 2048 B: 40.96 us to read and 61.44 us to write.
    options = {"spare": 0, "read_cycle": "20ns", "write_cycle": "30ns"}
    found = ways(**options)
    assert found["a"].utilization == pytest.approx(40.96 / 60.96)
    assert found["b"].utilization == pytest.approx(61.44 / 261.44)
    # Formula (3): 250 MB/s of 50 MB/s for each channel, or 240 of 33.3.
    guide = fg.design(read_mb_s=250, write_mb_s=240, cell="slc", **options)
    assert guide.chosen.channels_by_formula == 8
    assert guide.check.passes
    for way in guide.ways:
        assert way.simulated == pytest.approx(way.utilization, rel=2e-3), way
    assert "20 and 30 ns a byte" in str(guide)


def test_spare_bytes_may_need_another_channel():
    guide = fg.design(read_mb_s=280, write_mb_s=100, cell="slc", check=False)
    assert (guide.chosen.channels_by_formula, guide.chosen.channels) == (7, 8)
    assert any("spare bytes as data" in note for note in guide.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"read_mb_s": 0}, "above 0"),
        ({"advanced": ["cache"]}, "interleave or multi-plane"),
        ({"advanced": "interleave"}, "list"),
        ({"fill": 1.5}, "at most 1"),
        ({"cycle": 0}, "cycle=0"),
        ({"write_cycle": 0}, "write_cycle=0"),
        ({"dies": 0}, "dies=0"),
        ({"pins": 0}, "1 or more"),
        ({"logic_cells": 4}, "channel_logic_cells"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(fg.OptionError, match=message):
        fg.design(**{**EXAMPLE, "check": False, **options})


def test_the_command(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(
            "sys.argv", ["floatgate", "design", "--read-mb-s=250", "--write-mb-s=240", "--cell=slc", *arguments]
        )
        return main(), *capsys.readouterr()

    status, output, errors = call("--cycle=30ns", "--spare=0B", "--fill=0.94", "--no-check")
    assert (status, errors) == (0, "")
    assert "94.00%" in output
    assert "Design: 8 channels of 8 lines, 2 chips on each, 136 pins" in output
    status, output, _ = call("--advanced=none", "--no-check", "--json")
    assert json.loads(output)["chosen"]["chips"] == 5
    status, output, errors = call("--pins=10", "--no-check")
    assert (status, "pins too few" in output) == (1, True)
    status, output, errors = call("--page=many")
    assert status == 2
    assert errors.startswith("error: a size must be a text such as")


@pytest.mark.parametrize("cell", ["tlc", "qlc"])
def test_a_present_day_design(cell):
    guide = fg.design(read_mb_s=7000, write_mb_s=3000, cell=cell)
    assert guide.check.passes
    assert guide.chosen.channels <= 8
    assert guide.chosen.chips <= 16
    drive = fg.Device(f"{cell}-nvme").config
    assert guide.device().config["geometry"]["page_size"] == drive["geometry"]["page_size"]
    assert guide.device().config["buffer"]["write"] == "write-back"
    for way in guide.ways:
        assert way.simulated == pytest.approx(way.utilization, rel=5e-3), way


def test_a_design_that_no_one_would_build_is_refused():
    guide = fg.design(read_mb_s=7000, write_mb_s=3000, cell="slc", check=False)
    assert guide.chosen is None
    assert any("channels" in text for text in guide.options[0].missing)
    assert "no design fits" in str(guide)
    assert "controllers have at most 32" in guide.notes[0]
    with pytest.raises(fg.OptionError, match="unknown cell `mlc`: expected slc, tlc, qlc"):
        fg.design(read_mb_s=100, write_mb_s=100, cell="mlc")
    with pytest.raises(fg.OptionError, match="such as nv-ddr3@1600"):
        fg.design(read_mb_s=100, write_mb_s=100, interface="fast")
    faster = fg.design(read_mb_s=7000, write_mb_s=3000, interface="nv-ddr3@2400", check=False)
    assert faster.chosen.channels == 3
