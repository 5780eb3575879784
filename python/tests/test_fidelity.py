"""Errors against measured drives, and the page that has them."""

import csv
import re
import shutil

import pytest

from floatgate.studies import fidelity, ssdiq

#: Cells of the table, by their column.
COLUMNS = ["drive", "loads", *fidelity.BARS]


def cells(page):
    """Return the rows of the table with the errors by drive, without marks."""
    lines = page.partition("|Drive|")[2].partition("\n\n")[0].splitlines()[3:]
    rows = [dict(zip(COLUMNS, line.strip("|").split("|"), strict=True)) for line in lines]
    return {row["drive"]: row for row in rows}


def drive(reads, writes=None, fitted=()):
    """Return a drive with the given measured p99, and half of them as means and medians."""
    latency = lambda p99: (p99 // 2, p99 // 2, p99, p99)  # noqa: E731
    loads = [
        ssdiq.Load(1000 * (index + 1), 100, 100, latency(read), latency(write))
        for index, (read, write) in enumerate(zip(reads, writes or reads, strict=True))
    ]
    return ssdiq.Drive("none", "No drive", tuple(loads), tuple(fitted))


def found(known, changes=None):
    """Return simulated values that are the measured ones, except for the p99 of reads by load."""
    values = {each.asked: {"rate": each.writes, "read": [*each.read], "write": [*each.write]} for each in known.loads}
    for asked, value in (changes or {}).items():
        values[asked]["read"][2] = value
    return values


@pytest.fixture
def data(root, tmp_path):
    """A copy of the data that the page is made of."""
    return shutil.copytree(root / "docs" / "studies" / "ssdiq2025", tmp_path / "data")


def change(file, key, column, text):
    """Replace a cell of the row whose first cell is `key`, and return what was there."""
    with file.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    row = next(row for row in rows if row[0] == key)
    at = head.index(column)
    before, row[at] = row[at], text(row[at]) if callable(text) else text
    with file.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([head, *rows])
    return before


def test_the_page_is_made_of_the_data_of_the_study(root):
    made = fidelity.page(root / "docs" / "studies" / "ssdiq2025")
    assert (root / "docs" / "fidelity.md").read_text(encoding="utf-8") == made, "run `make fidelity`"
    assert list(cells(made)) == [drive.title for drive in ssdiq.DRIVES]


@pytest.mark.parametrize(
    ("file", "key", "column", "quantity"),
    [
        ("micron-7450-max", "20000", "simulated", "rates"),
        ("footprint", "447", "host MiB/s, simulated", "rates"),
        ("micron-7450-max", "110000", "read mean, us", "read mean"),
        ("micron-7450-max", "90000", "read p50, us", "read p50"),
        ("micron-7450-max", "90000", "read p99, us", "read p99"),
        ("micron-7450-max", "100000", "write mean, us", "write mean"),
        ("micron-7450-max", "90000", "write p99, us", "write p99"),
        ("footprint", "522", "simulated, with parity", "amplification"),
    ],
)
def test_a_changed_value_changes_its_cell_only(file, key, column, quantity, data):
    before = cells(fidelity.page(data))
    worse = lambda text: re.sub(r"[\d.]+$", lambda number: f"{7 * float(number[0]):.4g}", text)  # noqa: E731
    change(data / f"{file}.csv", key, column, worse)
    after = cells(fidelity.page(data))
    title = ssdiq.DRIVES[0].title
    assert [name for name in COLUMNS if after[title][name] != before[title][name]] == [quantity]
    assert all(after[drive.title] == before[drive.title] for drive in ssdiq.DRIVES[1:])
    assert fidelity.SIGNS["disagrees"] in after[title][quantity]


def test_fitted_rows_do_not_count(data):
    before = fidelity.page(data)
    for known in ssdiq.DRIVES:
        for asked in known.fitted:
            change(data / f"{known.device}.csv", f"{asked}*", "simulated", "1")
    change(data / "footprint.csv", "745*", "simulated, with parity", "9")
    assert fidelity.page(data) == before


def test_data_of_other_measurements_is_an_error(data):
    cell = change(data / "wd-dc.csv", "20000", "read p99, us", lambda text: f"1{text}")
    with pytest.raises(ValueError, match="wd-dc, 20000: the data is not that of the study; run `make fidelity`"):
        fidelity.page(data)
    change(data / "wd-dc.csv", "20000", "read p99, us", cell)
    lines = (data / "wd-dc.csv").read_text().splitlines()
    (data / "wd-dc.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ValueError, match=f"wd-dc: {len(lines) - 2} rows, expected {len(lines) - 1}"):
        fidelity.page(data)


def test_an_error_is_the_geometric_mean_of_factors():
    known = drive([100, 120, 140, 160], fitted=[1000])
    points = fidelity.points(known, found(known, {1000: 1, 2000: 60, 3000: 280, 4000: 160}))
    # Twice, half, and equal. The first row was fitted.
    assert fidelity.error(points["read p99"]) == pytest.approx(4 ** (1 / 3) - 1)
    assert fidelity.error(points["write p99"]) == 0
    assert fidelity.error([]) is None
    # A part of the rows.
    part = {asked: values for asked, values in found(known, {2000: 60}).items() if asked == 2000}
    assert fidelity.error(fidelity.points(known, part)["read p99"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("simulated", "factor"),
    [
        # The neighbors have 100 and 400.
        (100, 1), (250, 1), (400, 1), (50, 2), (800, 2),
    ],
)  # fmt: skip
def test_a_row_with_a_jump_counts_against_the_range_of_its_neighbors(simulated, factor):
    known = drive([100, 201, 400], writes=[100, 150, 200])
    points = fidelity.points(known, found(known, {2000: simulated}))
    assert points["read p99"][1].factor == pytest.approx(factor)
    # The means and medians of reads, too. Writes have no jump.
    read = found(known)
    read[2000]["read"][0] = read[2000]["write"][0] = 50
    points = fidelity.points(known, read)
    assert points["read mean"][1].factor == 1
    assert points["write mean"][1].factor == pytest.approx(75 / 50)


def test_a_factor_of_two_is_not_a_jump():
    known = drive([100, 200, 400])
    points = fidelity.points(known, found(known, {2000: 100}))
    assert points["read p99"][1].factor == pytest.approx(2)


def test_a_row_at_the_end_has_one_neighbor():
    known = drive([100, 100, 300])
    points = fidelity.points(known, found(known, {3000: 200}))
    # From 300 a factor of 1.5, and from the 100 of its neighbor a factor of 2.
    assert points["read p99"][2].factor == pytest.approx(1.5)
    points = fidelity.points(known, found(known, {3000: 120}))
    assert points["read p99"][2].factor == pytest.approx(1.2)


def test_a_perfect_simulation_has_no_error_at_a_peak():
    known = drive([100, 4000, 300])
    assert all(fidelity.error(points) == 0 for points in fidelity.points(known, found(known)).values())


def test_the_page_lists_errors_above_their_bars_with_their_largest_point(root):
    page = fidelity.page(root / "docs" / "studies" / "ssdiq2025")
    listed = page.partition("## Errors above their bars")[2].partition("## ")[0]
    for known in ssdiq.DRIVES:
        for quantity in fidelity.BARS:
            is_beyond = fidelity.SIGNS["disagrees"] in cells(page)[known.title][quantity]
            assert is_beyond == bool(re.search(rf"^- {known.title}: .*{quantity} \d", listed, re.MULTILINE))


def test_the_page_names_the_missing_mechanisms_of_known_drives(root):
    page = fidelity.page(root / "docs" / "studies" / "ssdiq2025")
    for each in ssdiq.MISSING:
        assert each.about in page
        assert set(each.devices) <= {known.device for known in ssdiq.DRIVES}


def test_published_errors_have_a_source(root):
    page = fidelity.page(root / "docs" / "studies" / "ssdiq2025")
    for each in fidelity.PUBLISHED:
        row = f"|{each.simulator}|{each.quantity}|{each.error}|{each.drive}|{each.source}|"
        assert row in page
        assert re.search(r"(Section|abstract)", each.source)
