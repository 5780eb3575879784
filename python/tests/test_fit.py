"""Fits of devices to measurements.

``FLOATGATE_FITS`` is the number of random devices that are fitted blind with all parameters, by default none.
"""

import json
import math
import os
import random
import stat
import subprocess
import sys

import pytest

import floatgate as fg
from floatgate import inferring, measurements, probing
from floatgate.__main__ import main
from floatgate.inferring import mean_of

#: A drive with few units and blocks.
BASE = """
base = "tlc-direct"
name = "small"
[geometry]
channels = 4
chips = 1
planes = 2
blocks = 80
pages = 48
[capacity]
logical = "320MiB"
[buffer]
capacity = "4MiB"
[sources]
geometry = "assumed: small"
capacity = "assumed: small"
buffer = "assumed: small"
"""

READ_1 = "rw=randread norandommap=1 bs=4k iodepth=1 number_ios=500"
READ_16K = "rw=randread norandommap=1 bs=16k iodepth=1 number_ios=500"
WRITE_1 = "rw=randwrite norandommap=1 bs=4k iodepth=1 number_ios=300"
WRITES = "rw=write bs=128k iodepth=32 number_ios=1200 ramp_time=0.02"


@pytest.fixture(scope="module")
def base():
    return fg.Device.from_toml(BASE)


def table(device, *points, seeds=(11, 12)):
    """Measure points on a device by simulation."""
    return fg.Measurements(tuple(probing.measure(device, points, seeds=seeds, n_jobs=1)))


POINTS = (
    fg.Point(READ_1, "read", "mean", curve="reads", x=1),
    fg.Point(READ_1, "read", "p50", curve="reads", x=1, use="check"),
    fg.Point(READ_16K, "read", "mean", curve="reads", x=16),
    fg.Point(WRITE_1, "write", "mean", curve="writes"),
    fg.Point(WRITES, "write", "mib_per_s", curve="sequential writes"),
)


@pytest.fixture(scope="module")
def truth(base):
    return base.with_options(
        {"nand.read": ["33us", "44us", "40.3us"], "nand.program": "2.5ms", "host.link_latency": "1.7us"}
    )


@pytest.fixture(scope="module")
def found(base, truth):
    measured = table(truth, *POINTS)
    paths = ["nand.read", "nand.program", "host.link_latency", "nand.advanced.suspend.resume"]
    return fg.fit(measured, base=base, parameters=paths, steps=3, n_jobs=1)


def test_identifiable_parameters_come_back_and_the_others_are_named(found, truth):
    by_path = {one.path: one for one in found.parameters}
    assert by_path.keys() == {
        "nand.read", "nand.program", "host.link_latency", "nand.advanced.suspend.resume"
    }  # fmt: skip
    for path in ("nand.read", "nand.program", "host.link_latency"):
        one = by_path[path]
        assert (one.origin, one.identified) == ("fitted", True), path
        true = mean_of(inferring.value_at(truth.config, path))
        assert mean_of(one.value) == pytest.approx(true, rel=0.05)
        low, high = map(mean_of, one.interval)
        assert low <= mean_of(one.value) <= high
        assert mean_of(inferring.value_at(found.device.config, path)) == pytest.approx(mean_of(one.value))
    # No load has reads that suspend programs.
    assert by_path["nand.advanced.suspend.resume"].origin == "assumed"
    assert not by_path["nand.advanced.suspend.resume"].identified
    assert by_path["nand.advanced.suspend.resume"].value == "5us"
    assert "Not identified within 5%: `nand.advanced.suspend.resume`." in found.report
    assert found.error("fit") < 0.02
    assert found.error("check") < 0.02
    assert found.error("check", "p99") is None
    # Points that were not fitted are simulated, too.
    assert [one.point.statistic for one in found.points] == ["mean", "p50", "mean", "mean", "mib_per_s"]


def test_the_device_file_says_where_each_value_is_from(found, tmp_path):
    found.write(tmp_path / "drive.toml")
    assert fg.Device(tmp_path / "drive.toml") == found.device
    lines = (tmp_path / "drive.toml").read_text().splitlines()
    values = lines[: lines.index("[sources]")]
    for line in values:
        if " = " in line and line.partition(" ")[0] not in ("name", "version", "description"):
            assert line.partition("  # ")[2].startswith(("measured", "fitted: 95% interval ", "assumed")), line
    assert "resume = " in next(line for line in values if line.endswith("(0.5us to 2000us)") or "resume" in line)
    sources = {path: source for path, _, source in fg.Device(tmp_path / "drive.toml").figures if source}
    assert sources["nand.read"].startswith("fitted: 95% interval ")
    assert sources["geometry.channels"].startswith("assumed")


def test_inferred_values_are_those_of_the_formulas(base):
    """Values computed from the formulas of docs/own-drive.md are inferred exactly."""
    link, read, program, link_latency = 6e9, 50e-6, 2e-3, 2e-6
    cycles, transfer = 7 * 25e-9, 4096 / 1.2e9
    stripe = 8 * 3 * 16384
    drain = stripe / (program + 5e-3 / 16)
    write = 2 * link_latency + 4096 / link + 4096 / 12.8e9 + 500e-9
    points = [
        fg.Point("rw=read bs=128k iodepth=32", "read", "mib_per_s", 2e9 / 2**20),
        fg.Point(READ_16K, "read", "mean", 1e6 * (2 * link_latency + cycles + 4 * transfer + read + 16384 / link)),
        fg.Point(READ_1, "read", "mean", 1e6 * (2 * link_latency + cycles + transfer + read + 4096 / link)),
        fg.Point(WRITE_1, "write", "mean", 1e6 * write),
        fg.Point(WRITE_1.replace("4k", "16k"), "write", "mean", 1e6 * (write + 5e-6)),
        fg.Point(WRITE_1.replace("4k", "64k"), "write", "mean", 1e6 * (write + 5e-6 + 49152 / link)),
        fg.Point("rw=randread bs=4k iodepth=256", "read", "iops", 4 / read),
        fg.Point("rw=write bs=128k iodepth=32", "write", "mib_per_s", drain / 2**20),
        fg.Point("rw=write bs=128k iodepth=32 io_size=8m", "write", "mib_per_s", 8 / ((8 << 20) - (3 << 20)) * drain),
        fg.Point("rw=write bs=128k iodepth=32 io_size=1m", "write", "mib_per_s", 5000),
    ]
    # Planes of a die read as one, so that a unit has pages of twice the size.
    inferred = {path: one.value for path, one in inferring.infer(points, base).items()}
    assert inferred == {
        "host.link_bandwidth": pytest.approx(link),
        "host.link_latency": pytest.approx(link_latency),
        "bus.protocol.nv-ddr": pytest.approx(1.2e9),
        "nand.read": pytest.approx(read),
        "geometry.planes": 1,
        "geometry.page_size": 32768,
        "nand.program": pytest.approx(program),
        "buffer.capacity": pytest.approx(3 << 20),
    }
    # Values to check are not used, and neither are those of several jobs.
    unused = [fg.Point(READ_1, "read", "mean", 80, use="check"), fg.Point(f"{READ_1} ; {WRITE_1}", "read", "mean", 80)]
    assert inferring.infer(unused, base) == {}


@pytest.mark.parametrize("blocks", [66, 95])
@pytest.mark.parametrize("parity", [0, 0.03])
def test_blocks_follow_from_a_footprint_sweep(base, blocks, parity):
    usable = (blocks - 3.5) * 8 * 48 * 16384
    points = [
        fg.Point(f"rw=randwrite bs=4k iodepth=256 size={share}%", "", "write_amplification",
                 (1 + parity) * inferring.amplification(usable / (share / 100 * (320 << 20))))
        for share in (50, 75, 100)
    ]  # fmt: skip
    assert inferring.infer(points, base)["geometry.blocks"].value == blocks


def test_the_closed_form_of_amplification():
    # x = exp(-r (1 - x)), A = 1 / (1 - x), with r = 2 ln 2: x = 1/2.
    assert inferring.amplification(2 * math.log(2)) == pytest.approx(2)
    assert inferring.amplification(1) == math.inf


def test_known_parameters_are_measured_and_remain(base):
    measured = table(base, POINTS[0])
    known = fg.Known("host.software", "2us", "own")
    found = fg.fit(
        fg.Measurements(measured.points, (known,)), base=base, known={"nand.erase": "4ms"}, parameters=["nand.read"],
        steps=0, n_jobs=1,
    )  # fmt: skip
    by_path = {one.path: one for one in found.parameters}
    assert (by_path["host.software"].origin, by_path["host.software"].note) == ("measured", "own")
    assert by_path["nand.erase"].value == "4ms"
    # Without a refinement, an inferred value is measured, and has no interval.
    assert (by_path["nand.read"].origin, by_path["nand.read"].interval) == ("measured", None)
    # The software of the host is a part of the latency. Random reads have equally many pages of each type.
    assert mean_of(by_path["nand.read"].value) == pytest.approx(mean_of(base.config["nand"]["read"]) - 2e-6, rel=0.01)
    assert found.device.config["host"]["software"] == "2us"


def test_a_search_finds_choices(base):
    device = base.with_options({"nand.advanced.cache_read": False, "nand.read": ["33us", "44us", "40.3us"]})
    load = "rw=randread norandommap=1 bs=4k iodepth=32 number_ios=1k"
    measured = table(device, fg.Point(load, "read", "iops"), POINTS[0])
    choice = {"nand.advanced.cache_read": [True, False], "nand.read": fg.Range("20us", "80us", log=True)}
    with pytest.raises(fg.OptionError, match="needs a search; set trials="):
        fg.fit(measured, base=base, parameters=choice, n_jobs=1)
    found = fg.fit(measured, base=base, parameters=choice, trials=12, n_jobs=1, steps=3)
    assert found.device.config["nand"]["advanced"]["cache_read"] is False
    assert mean_of(found.device.config["nand"]["read"]) == pytest.approx(39.1e-6, rel=0.05)


def test_the_same_store_repeats_no_run(base, tmp_path, monkeypatch):
    measured = table(base, POINTS[0])
    options = {"base": base, "parameters": ["nand.read"], "store": tmp_path / "store", "n_jobs": 1, "steps": 2}
    steps = []
    first = fg.fit(measured, **options, progress=lambda *said: steps.append(said[:2]))
    assert steps[-1] == (3, 3)
    monkeypatch.setattr("floatgate.sweeping.run", None)
    assert fg.fit(measured, **options).report == first.report
    assert not list((tmp_path / "store").glob(".states*"))


def test_a_table_is_read_and_written(tmp_path):
    place = tmp_path / "table.csv"
    place.write_text(
        "# A comment.\n"
        "load,precondition,stream,operation,statistic,value,uncertainty,curve,x,use,source\n"
        ",,,,capacity.logical,800MB,,,,,data sheet\n"
        ",,,,buffer.read,true,,,,,\n"
        f"{READ_1},fill,,read,p99.9,100,,reads,1,,own\n"
        "name=a rw=read ; name=b rw=write,steady,a,read,iops,1e3,5%,,,check,\n"
        f"{WRITE_1},,,,write_amplification,1.5,,,,,\n"
    )
    read = measurements.read(place)
    assert read.known == (fg.Known("capacity.logical", "800MB", "data sheet"), fg.Known("buffer.read", True))
    metrics = ["requests.read.latency_us.p99_9", "streams.a.requests.read.iops", "write_amplification"]
    assert [point.metric for point in read.points] == metrics
    assert [point.uncertainty for point in read.points] == [0.15, 0.05, 0.02]
    assert [point.use for point in read.points] == ["fit", "check", "fit"]
    assert read.points[0].label == "reads 1 read p99.9"
    read.write(tmp_path / "again.csv")
    again = measurements.read(tmp_path / "again.csv")
    assert again.points == read.points
    assert [one.path for one in again.known] == ["capacity.logical", "buffer.read"]
    assert (read + read).points == read.points * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rw=read,read,iosp,5", r"line 3: unknown statistic `iosp` \(nearest: iops"),
        ("rw=read,read,iops,-5", "line 3: invalid value -5.0"),
        ("rw=read,reed,iops,5", "line 3: invalid operation `reed`"),
        ("rw=read,read,iops,x", "line 3: `x` is not a number"),
        ("rw=read,read,,5", "line 3: missing statistic"),
        ("rw=read,read,iops,5,6", "line 3: expected 4 columns"),
    ],
)
def test_mistakes_in_a_table_have_their_line(tmp_path, line, message):
    (tmp_path / "table.csv").write_text(f"# comment\nload,operation,statistic,value\n{line}\n")
    with pytest.raises(fg.OptionError, match=message):
        measurements.read(tmp_path / "table.csv")


def test_mistakes_are_refused_before_any_run(base, tmp_path, monkeypatch):
    monkeypatch.setattr("floatgate.sweeping.run", None)
    points = fg.Measurements((fg.Point(READ_1, "read", "mean", 60),))
    for options, message in (
        ({"parameters": ["nand.reed"]}, "has no value of nand.reed"),
        ({"parameters": ["gc.soft_threshold"]}, "gc.soft_threshold has no bounds"),
        ({"steps": -1}, "invalid steps"),
        ({"hold_out": 1}, "invalid hold-out"),
    ):
        with pytest.raises(fg.OptionError, match=message):
            fg.fit(points, base=base, n_jobs=1, **options)
    with pytest.raises(fg.OptionError, match="no points to fit"):
        fg.fit(fg.Measurements((fg.Point(READ_1, "read", "mean", 60, use="check"),)), base=base)
    with pytest.raises(fg.OptionError, match="has no value"):
        fg.fit(fg.Measurements((fg.Point(READ_1, "read", "mean"),)), base=base)
    with pytest.raises(fg.OptionError, match="expected a table of measurements"):
        fg.fit(tmp_path / "x.txt", base=base)


def test_every_third_point_of_a_curve_is_held_out():
    points = tuple(
        fg.Point(READ_1, operation, "iops", 1, curve="c", x=x) for operation in ("read", "write") for x in range(7)
    )
    held = fg.Measurements(points).with_hold_out(3)
    assert [point.x for point in held.points if point.use == "check"] == [2, 5, 2, 5]
    # The last point remains, because the others are between it and the first.
    assert all(point.use == "fit" for point in fg.Measurements(points[:3]).with_hold_out(3).points)


#: Results of fio 3.36 for a job, reduced to what is read.
OPERATION = {
    "io_bytes": 4096000, "bw_bytes": 2097152, "iops": 512.0, "total_ios": 1000,
    "clat_ns": {"mean": 60000.0, "N": 1000, "percentile": {"50.000000": 59000, "99.000000": 90000}},
}  # fmt: skip
NONE = {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "total_ios": 0}


def job(name, operation, **options):
    return {"jobname": name, "read": NONE, "write": NONE, "trim": NONE, operation: OPERATION, "job options": options}


def test_the_json_of_fio_is_read(tmp_path):
    (tmp_path / "result.json").write_text("fio: a note\n" + json.dumps({
        "global options": {"bs": "4k", "direct": "1", "norandommap": "", "filename": "/dev/x"},
        "jobs": [
            job("alone", "read", rw="randread", iodepth="4", runtime="60", time_based=""),
            job("reader", "read", rw="randread", stonewall=""),
            job("writer", "write", readwrite="write"),
        ],
    }))  # fmt: skip
    points = measurements.read(tmp_path / "result.json").points
    assert [point.load for point in points[::5]] == [
        "rw=randread bs=4k iodepth=4 norandommap=1 runtime=2 time_based=1",
        *["name=reader rw=randread bs=4k norandommap=1 ; name=writer rw=write bs=4k norandommap=1"] * 2,
    ]
    values = {(point.stream, point.operation, point.statistic): point.value for point in points}
    assert {key[0] for key in values} == {"", "reader", "writer"}
    assert [values["", "read", name] for name in ("iops", "mib_per_s", "mean", "p50", "p99")] == [512, 2, 60, 59, 90]
    assert values["writer", "write", "mean"] == 60
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(fg.OptionError, match="is not the JSON output of fio"):
        measurements.read(tmp_path / "other.json")


def test_a_latency_log_is_read(tmp_path):
    (tmp_path / "log.log").write_text("".join(f"{n}, {n * 1000}, 1, 4096, 0, 0\n" for n in range(1, 1001)))
    (tmp_path / "table.csv").write_text(f"load,statistic,value\n{WRITE_1},log,log.log\n")
    values = {one.statistic: (one.operation, one.value) for one in measurements.read(tmp_path / "table.csv").points}
    assert values == {
        "mean": ("write", 500.5), "p50": ("write", 500.5), "p99": ("write", pytest.approx(990.01)),
        "p99.9": ("write", pytest.approx(999.001)),
    }  # fmt: skip


@pytest.fixture
def plan():
    return probing.plan(random_write_iops=18_000, effort=0.05)


def test_a_probe_writes_jobs_and_never_to_the_device(tmp_path, plan, capsys, monkeypatch):
    device = tmp_path / "disk"
    device.write_bytes(b"data")
    place = tmp_path / "measured"
    monkeypatch.setattr(sys, "argv", ["floatgate", "fit", "probe", str(device), "--out", str(place)])
    assert main() == 0
    text = capsys.readouterr().out
    assert "latency under load" in text
    assert f"To measure, which erases all data on {device}" in text
    script = place / "measure.sh"
    assert script.stat().st_mode & stat.S_IXUSR
    for arguments, message in (([], "add --destroy-data"), (["--destroy-data"], "is not a block device")):
        done = subprocess.run([script, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr
    assert device.read_bytes() == b"data"
    # The simulator reads the job files as fio does.
    jobs = sorted(place.glob("*.fio"))
    assert {path.stem for path in jobs} == {probe.name for probe in plan}
    for path in jobs:
        fg.JobFile(path)
    assert "write_lat_log=load-50-latency" in (place / "load-50.fio").read_text()
    points = measurements.read(place / "plan.csv").points
    assert all(math.isnan(point.value) for point in points)
    with pytest.raises(fg.OptionError, match="has no results: run its script"):
        measurements.read(place)
    # Options of a load are those of the job file.
    (place / "load-50.json").write_text(json.dumps({"jobs": [job("latency", "read"), job("load", "write")]}))
    (place / "footprint-50.json").write_text(json.dumps({"jobs": [job("footprint-50", "write")]}))
    for when, units in (("before", 1000), ("after", 1000 + 3 * 4096000)):
        counters = {"Physical media units written": {"hi": 0, "lo": units}}
        (place / f"footprint-50.ocp-{when}.json").write_text(json.dumps(counters))
    found = measurements.read(place).points
    values = {(point.curve, point.stream, point.operation, point.statistic): point.value for point in found}
    assert values["latency under load, writes/s", "latency", "read", "p99"] == 90
    assert values["random writes by footprint, %", "", "", "write_amplification"] == 3
    assert {point.precondition for point in found} > {"steady"}
    assert all(not math.isnan(point.value) for point in found)


def test_every_load_of_a_probe_can_be_simulated(base, plan):
    names = {"read-depth-256", "burst-4m", "footprint-50", "load-100", "saturated-2", "mixed-70", "trim"}
    points = [point for probe in plan if probe.name in names for point in probe.points()]
    assert {point.source for point in points} == names
    values = probing.measure(base, points, n_jobs=1)
    assert len(values) == len(points)
    assert all(point.value > 0 for point in values)
    for probe in plan:
        fg.Synthetic(probe.load)


def test_the_command_writes_the_device_and_the_report(base, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(BASE)
    table(base.with_options({"nand.erase": "4ms"}), *POINTS[:2]).write(tmp_path / "table.csv")
    command = ["floatgate", "fit", "table.csv", "--base", "small.toml", "--parameter", "nand.read=20us..90us",
               "--set", "nand.erase=4ms", "--steps", "2", "--jobs", "1", "--quiet", "--out", "drive.toml"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    report = capsys.readouterr().out
    assert report.startswith("# Fit of small\n")
    assert "| `nand.erase` | 4ms | measured |" in report
    assert fg.Device(tmp_path / "drive.toml").config["nand"]["erase"] == "4ms"
    monkeypatch.setattr(sys, "argv", [*command, "--report", "report.md"])
    assert main() == 0
    assert (tmp_path / "report.md").read_text() == report
    monkeypatch.setattr(sys, "argv", [*command[:-1], "small.toml"])
    assert main() == 2
    assert "would overwrite small.toml" in capsys.readouterr().err


def test_the_example_has_the_structure_of_the_drive(root):
    """The values of docs/own-drive.md that follow by hand from the same drive."""
    read = measurements.read(root / "examples" / "micron-7450-max.csv")
    device = fg.Device("tlc-direct", {one.path: one.value for one in read.known})
    inferred = inferring.infer(read.points, device)
    assert inferred["geometry.planes"].value == 2
    assert inferred["geometry.page_size"].value == 32768
    assert inferred["host.link_bandwidth"].value == pytest.approx(6.8e9, rel=1e-3)
    assert inferred["nand.program"].value == pytest.approx(2.2e-3, rel=0.05)
    assert sum(point.use == "fit" for point in read.points) <= len(read.points) / 3


#: Measurements of a blind fit.
BLIND = [
    "read-depth-1", "read-depth-8", "read-depth-64", "read-size-16k", "read-size-128k", "read-sequential",
    "write-size-4k", "write-size-16k", "write-size-128k", "burst-8m", "burst-32m", "write-sequential",
    "footprint-60", "footprint-80", "footprint-100", "load-30", "load-80", "saturated-5", "saturated-10",
]  # fmt: skip


def random_options(seed):
    """Return random parameters, each within a factor of its value in the base."""
    source = random.Random(seed)

    def near(value, factor=1.5):
        return value * math.exp(source.uniform(-math.log(factor), math.log(factor)))

    cells = near(1)
    return {
        "nand.read": [f"{value * cells:.4g}us" for value in (45, 60, 55)],
        "nand.program": f"{near(1800):.4g}us",
        "nand.erase": f"{near(5000):.4g}us",
        "nand.advanced.suspend.latency": f"{near(20, 3):.4g}us",
        "nand.advanced.suspend.resume": f"{near(5, 3):.4g}us",
        "bus.protocol.nv-ddr": f"{near(1600):.4g}MT/s",
        "buffer.capacity": f"{round(near(4096))}KiB",
        "host.link_bandwidth": f"{near(7000):.4g}MB/s",
        "host.link_latency": f"{near(1, 2):.4g}us",
        "geometry.blocks": round(near(85, 1.2)),
    }


@pytest.mark.parametrize("seed", range(1, 1 + int(os.environ.get("FLOATGATE_FITS", "0"))))
def test_random_devices_are_fitted_blind(base, seed):
    options = random_options(seed)
    plan = [probe for probe in probing.plan(random_write_iops=18_000, effort=0.3) if probe.name in BLIND]
    measured = table(base.with_options(options), *probing.points_of(plan).points, seeds=(11, 12, 13))
    found = fg.fit(measured, base=base, n_jobs=1)
    by_path = {one.path: one for one in found.parameters}
    assert by_path.keys() == options.keys()
    errors = {path: mean_of(by_path[path].value) / mean_of(options[path]) - 1 for path in options}
    print({path: (f"{error:+.1%}", by_path[path].identified) for path, error in errors.items()})
    assert {path for path in options if by_path[path].identified} >= {"nand.read", "nand.program", "geometry.blocks"}
    wrong = {path: error for path, error in errors.items() if by_path[path].identified and abs(error) > 0.05}
    assert not wrong
