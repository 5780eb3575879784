"""Studies of papers, and the notebooks."""

import csv
import gc
import itertools
import math
import re
import statistics
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import floatgate as fg
from floatgate import studies
from floatgate.studies import (
    agrawal,
    agrawal2008,
    commandline,
    drawing,
    fidelity,
    hu,
    hu2013,
    page,
    park2015,
    reasons,
    ssdiq,
    study,
    workloads,
    yoo,
    yoo2013,
)
from test_package import blocks

CLAIM = study.Claim("it is so", "Section 1")


@pytest.fixture(scope="session")
def written_reports(tmp_path_factory):
    """All studies in their smallest form, run by the command."""
    place = tmp_path_factory.mktemp("studies")
    reports = {}
    run = commandline.run

    def kept(name, *arguments, **options):
        reports[name] = run(name, *arguments, **options)
        return reports[name]

    setting = pytest.MonkeyPatch()
    setting.setattr(workloads, "QUICK_REQUESTS", 60)
    setting.setattr(commandline, "run", kept)
    for name in commandline.STUDIES:
        words = [name, "--quick", "--jobs", "1", "--out", str(place), "--markdown", str(place / "docs")]
        assert studies.command(words) == 0
    setting.undo()
    return reports | {"place": place}


@pytest.fixture(scope="session")
def written(written_reports):
    """The directory of their pages."""
    return written_reports["place"]


@pytest.mark.parametrize("name", list(commandline.STUDIES))
def test_a_page_has_every_figure_and_is_self_contained(name, written):
    text = (written / f"{name}.html").read_text()
    entries = commandline.STUDIES[name].entries
    assert text.count("<svg") == len(entries)
    for key, entry in entries.items():
        assert f'id="{key}"' in text
        assert entry.title.replace("'", "&#x27;") in text
        assert pq.read_table(written / name / f"{key}.parquet").num_rows > 0
    # Names of formats (XML namespaces) are not addresses to load.
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', re.sub(r'xlink:href="#[^"]*"', "", text))
    assert "A quick run" in text
    assert f"floatgate study {name} --quick" in text


@pytest.mark.parametrize("name", list(commandline.STUDIES))
def test_figures_and_data_are_written_next_to_the_page_of_the_documentation(name, written):
    text = (written / "docs" / f"{name}.md").read_text()
    images = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(images) == len(commandline.STUDIES[name].entries)
    for image in images:
        assert (written / "docs" / image).read_text().startswith("<svg")
    for key in commandline.STUDIES[name].entries:
        data = pq.read_table(written / name / f"{key}.parquet")
        rows = list(csv.reader((written / "docs" / name / f"{key}.csv").read_text().splitlines()))
        assert rows[0] == data.column_names
        assert len(rows) == data.num_rows + 1
    assert "<td" not in text
    assert "style=" not in text


def test_the_documentation_has_all_figures(root):
    for name, known in commandline.STUDIES.items():
        text = (root / "docs" / "studies" / f"{name}.md").read_text()
        for key in known.entries:
            assert f'id="{key}"' in text, f"{name} {key}: run `make studies`"
            assert f"({name}/{key}.csv)" in text
        assert "A quick run" not in text


def test_pages_of_the_documentation_have_the_form_of_new_ones(root, written):
    """Compare titles, claims and reasons, which do not depend on results, with those of runs."""
    for name in commandline.STUDIES:
        page, made = (place / f"{name}.md" for place in (root / "docs" / "studies", written / "docs"))
        patterns = [r"^#+ .*", r"^\[.*", r"^!.*"]
        if "## Verdicts" in page.read_text():  # Tables without claims have results only.
            patterns.append(r"^\|[^|]*\|[^|]*\|")
        for pattern in patterns:
            found = [re.findall(pattern, each.read_text(), re.MULTILINE) for each in (page, made)]
            missing = [line for line in found[1] if line not in found[0] and not line.startswith("|standard|")]
            assert not missing, f"{page}: run `make studies`"


def test_the_overview_has_the_rules_of_verdicts_and_workloads(root):
    text = " ".join((root / "docs" / "studies" / "index.md").read_text().split())
    assert study.RULES in text
    assert workloads.ABOUT in text
    for name, variant in study.VARIANTS.items():
        assert f"|{variant.short}|{name}|{variant.about}|" in text


def test_the_overview_has_the_times_of_writes_beside_those_of_ssdsim(root, tmp_path):
    text = (root / "docs" / "studies" / "index.md").read_text()
    rows = re.findall(r"^\|(\w+)\|[\d. /]+\|([\d.]+) / ([\d.]+)\|", text, re.MULTILINE)
    assert len(rows) == 6
    cases = {"static": hu.FOUR_CHANNELS | hu.static("s2"), "dynamic": hu.FOUR_CHANNELS | hu.dynamic("s2")}
    for name, *printed in rows:
        footprint = (48 << 20) / workloads.area(name)
        setting = studies.Setting(requests=8000, footprint=footprint, directory=tmp_path, jobs=1)
        found = hu.grid(setting, [name], cases, state=hu.NEW)
        # SSDsim excludes the program.
        assert [f"{found.of('write us', case, name) - 200:.1f}" for case in cases] == printed, name


@pytest.mark.parametrize("name", list(commandline.STUDIES))
def test_claims_that_do_not_agree_have_a_reason(name, root):
    page = (root / "docs" / "studies" / f"{name}.md").read_text()
    rows = [line[1:-1].split("|") for line in page.splitlines() if line.startswith("|") and line.count("|") > 6]
    assert not [row[0] for row in rows if row[3].startswith(("≈", "±", "✗")) and not row[-1]]


def test_readme_has_the_verdicts_of_the_least_reproduced_paper(root):
    text = (root / "docs" / "studies" / "hu2013.md").read_text()
    counts = [int(each) for each in re.search(r"^\|standard((?:\|\d+){4})\|$", text, re.MULTILINE)[1][1:].split("|")]
    readme = " ".join((root / "README.md").read_text().split())
    assert f"of {sum(counts)} claims of [Hu et al. 2013](docs/studies/hu2013.md), " in readme
    assert "{} agree, {} agree in direction, {} only in sign, and {} do not".format(*counts) in readme


def test_list_has_all_figures(capsys):
    assert studies.command(["LIST"]) == 0
    printed = capsys.readouterr().out
    for name, known in commandline.STUDIES.items():
        assert f"{name}: " in printed
        for key in known.entries:
            assert f"  {key}: " in printed


def test_missing_studies_and_files_are_errors(tmp_path):
    with pytest.raises(fg.OptionError, match=r"unknown study `hu2012`: expected hu2011, .*agrawal2008"):
        studies.command(["hu2012"])
    with pytest.raises(fg.OptionError, match=r"park2015 has no figure-4: expected figure-3, "):
        studies.command(["park2015", "figure-3", "figure-4", "--quick"])
    setting = studies.Setting(requests=10, traces=tmp_path / "nowhere", jobs=1, directory=tmp_path)
    with pytest.raises(fg.TraceError, match=r"directory .*nowhere does not exist"):
        setting.workload("Fin1")
    (tmp_path / "file").write_text("")
    with pytest.raises(fg.OutputError, match="cannot"):
        studies.run("park2015", ["figure-3"], quick=True, jobs=1, out=tmp_path / "file")


def test_a_study_runs_on_a_changed_device(tmp_path):
    words = ["hu2011", "figure-19", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    assert studies.command(words) == 0
    before = pq.read_table(tmp_path / "hu2011" / "figure-19.parquet")
    assert studies.command([*words, "--set", "nand.program=400us", "--set", "gc.hard_threshold=2"]) == 0
    after = pq.read_table(tmp_path / "hu2011" / "figure-19.parquet")
    # Two programs of 200 us more, one after another.
    assert after["command us"][0].as_py() > before["command us"][0].as_py() + 190
    text = (tmp_path / "hu2011.html").read_text()
    assert "floatgate study hu2011 figure-19 --quick --set nand.program=400us --set gc.hard_threshold=2" in text
    with pytest.raises(fg.OptionError, match="`gc`: expected PATH=VALUE"):
        studies.command([*words, "--set", "gc"])
    with pytest.raises(fg.ConfigError, match="unknown key"):
        studies.run("hu2011", ["figure-19"], quick=True, jobs=1, out=tmp_path, device={"gc.hard": 2})


def test_runs_of_changed_devices_are_stored_by_their_digest(tmp_path):
    setting = studies.Setting(requests=200, directory=tmp_path, jobs=1)
    points = [{"device": "hu2011", "geometry.blocks": 64, "workload": setting.workload("MSN").trace}]
    one = setting.rows(points)
    changed = studies.Setting(requests=200, directory=tmp_path, jobs=1, device={"nand.read": "80us"})
    other = changed.rows(points)
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert other[0]["requests.read.latency_us.mean"] > one[0]["requests.read.latency_us.mean"] + 50
    # An option of the setting overrides that of the study.
    same = studies.Setting(requests=200, directory=tmp_path, jobs=1, device={"geometry.blocks": 64})
    assert same.rows([points[0] | {"geometry.blocks": 128}]) == one


@pytest.mark.parametrize("name", list(study.VARIANTS))
def test_variants_are_valid(name, tmp_path):
    variant = study.VARIANTS[name]
    standard = studies.Setting(requests=200, directory=tmp_path, jobs=1, seeds=(0, 1))
    varied = standard.varied(name)
    assert varied != standard
    assert varied.seeds == (0,)
    assert dict(varied.device) == variant.device
    assert varied.changed("hu2011", hu.ONE_CHANNEL).logical_bytes >= workloads.LARGEST_FOOTPRINT
    users = [known for known in commandline.STUDIES.values() if name in known.variants]
    assert users
    for known in users:
        assert len({study.VARIANTS[each].short for each in known.variants}) == len(known.variants)


def test_garbage_collection_first_shows_copy_back(tmp_path):
    """SSDsim collects garbage before it serves requests, so that copy-back shows in response times."""
    setting = studies.Setting(requests=60_000, directory=tmp_path, jobs=1)
    calm = hu.copy_back(setting, ["MSN"])
    first = hu.copy_back(setting.varied("gc-first"), ["MSN"])
    assert calm.mean("all us", "wise", "basic") == pytest.approx(1.0, abs=0.05)
    assert first.mean("all us", "wise", "basic") > 1.2
    # The moves of a victim hold the channel. A higher priority alone delays other chips less.
    ahead = hu.copy_back(replace(setting, device={"gc.hard_threshold": 3}), ["MSN"])
    assert first.of("all us", "basic", "MSN") > 10 * ahead.of("all us", "basic", "MSN")


def test_a_queue_of_five_gives_the_papers_order(tmp_path):
    setting = studies.Setting(requests=20_000, directory=tmp_path, jobs=1).varied("queue-5")
    found = hu.static_orders(setting, ["Syn1"])
    ms = [found.of("all us", case, "Syn1") / 1000 for case in found.cases]
    assert ms == pytest.approx([1057.5, 611.8, 592.9, 594.4, 577.5, 577.0], abs=0.1)


def test_bimodal_sizes_have_the_mean_of_the_table():
    made = workloads.generate("MSN", 60_000, sizes="bimodal")
    reads = made.sectors[made.read] / 2
    assert set(reads) == {8, 28}
    # Four standard errors of a share of 8%.
    assert (reads == 28).mean() == pytest.approx(0.08, abs=4 * math.sqrt(0.08 * 0.92 / len(reads)))
    small = workloads.generate("Fin1", 60_000, sizes="bimodal").moments()
    assert small["read_kib"] == pytest.approx(workloads.TABLE_1["Fin1"].read_kib, rel=0.1)


def test_pages_that_were_written_alone_share_channels_by_chance(tmp_path):
    setting = studies.Setting(requests=4_000, sizes="bimodal", directory=tmp_path, jobs=1)
    rows = {row["workload"]: row for row in hu2013.one_channel(setting).data.to_pylist()}
    # MSN reads 4 or 14 pages of 2 KiB, 8 or 28 KiB, from 4 channels.
    shares = {4: 0.92, 14: 0.08}
    pages = sum(number * share for number, share in shares.items())
    in_turn = 100 * sum((number - 4) * share for number, share in shares.items()) / pages
    by_chance = 100 * sum((number - 4 * (1 - 0.75**number)) * share for number, share in shares.items()) / pages
    msn = rows["MSN"]
    assert msn["static, %"] == pytest.approx(in_turn, rel=0.05)
    # The writes of the workload have several pages, and put them in turn again.
    assert msn["static, %"] < msn["dynamic, %"] < msn["scattered: dynamic, %"] < by_chance
    assert msn["scattered: more, %"] > 2 * msn["more, %"] > 0
    assert all(row["scattered: dynamic, %"] >= row["dynamic, %"] for row in rows.values())


def test_a_run_that_fails_fails_the_figure(tmp_path):
    setting = studies.Setting(requests=10, directory=tmp_path, jobs=1)
    with pytest.raises(fg.SimulationError, match=r"a run of the study failed: .*iodepth"):
        setting.rows([{"device": "tiny", "workload": f"rw=read number_ios=1 {key}"} for key in ("", "iodepth=none")])


def test_the_temporary_directory_is_deleted_with_the_setting():
    setting = studies.Setting(requests=10)
    place = setting.varied("twice the footprint")._place
    assert setting._place == place
    setting.workload("MSN")
    assert (place / "workloads").is_dir()
    del setting
    gc.collect()
    assert not place.exists()


def test_runs_are_stored(tmp_path):
    setting = studies.Setting(requests=10, directory=tmp_path, jobs=1)
    common = {"device": "tiny", "workload": setting.workload("MSN").trace, "precondition": "none"}
    points = [common | {"prewrite": how, "_name": how} for how in ("even", "allocation", "none")]
    rows = setting.rows(points)
    assert [row["_name"] for row in rows] == ["even", "allocation", "none"]
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()}
    assert len(files) == 3
    assert setting.rows(points) == rows
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").iterdir()} == files


@pytest.mark.parametrize("name", list(workloads.TABLE_1))
def test_workloads_have_the_moments_of_the_table(name):
    wanted = workloads.TABLE_1[name]
    made = workloads.generate(name, 40_000)
    got = made.moments()
    # Four standard errors of a mean of exponential intervals and geometric sizes, and of a share.
    reads = 40_000 * wanted.read_share
    assert got["interval_us"] == pytest.approx(wanted.interval_us, rel=4 / math.sqrt(40_000))
    assert got["read_kib"] == pytest.approx(wanted.read_kib, rel=4 / math.sqrt(reads))
    assert got["write_kib"] == pytest.approx(wanted.write_kib, rel=4 / math.sqrt(40_000 - reads))
    share = wanted.read_share
    assert got["read_share"] == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 40_000))
    if wanted.multiples is not None:
        whole = made.sectors[~made.read] % 8 == 0
        assert whole.mean() == pytest.approx(wanted.multiples, abs=2 / math.sqrt(len(whole)))
        assert (made.lba[made.sectors % 8 == 0] % 8 == 0).all()


@pytest.mark.parametrize("name", [*workloads.TABLE_1, *workloads.TABLE_6])
@pytest.mark.parametrize("footprint", [0.5, 2.0])
def test_workloads_stay_in_their_footprint(name, footprint):
    made = workloads.generate(name, 3_000, footprint)
    end = workloads.area(name, footprint) / 512
    assert end * 512 <= workloads.LARGEST_FOOTPRINT
    assert made.lba.min() >= 0
    assert (made.lba + made.sectors).max() <= end
    # The upper half of the footprint is used, too.
    assert (made.lba > end / 2).mean() > 0.2
    again = workloads.generate(name, 3_000, footprint)
    assert np.array_equal(made.lba, again.lba)
    assert np.array_equal(made.arrival, again.arrival)


def test_intense_workloads_match_the_table():
    made = workloads.generate("Syn4", 8_000)
    assert set(made.sectors) == {40}
    assert set(np.diff(made.arrival)) == {200_000}
    assert made.read.mean() == pytest.approx(0.75, abs=0.02)


def test_regions_follow_a_zipf_distribution():
    made = workloads.generate("Fin1", 60_000)
    regions = made.lba // (workloads.REGION // 512)
    counts = np.sort(np.bincount(regions, minlength=workloads.area("Fin1") // workloads.REGION))[::-1]
    # Of the requests that do not continue the previous one, the most used region gets 1 / H(n).
    harmonic = (1 / np.arange(1, len(counts) + 1)).sum()
    assert counts[0] / counts.sum() == pytest.approx(1 / harmonic, rel=0.1)


def test_real_traces_are_used_if_available(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    lines = [f"{1000 * i} 0 {8 * i} 8 {i % 2}" for i in range(50)]
    (traces / "Financial1.ascii").write_text("\n".join(lines) + "\n")
    setting = studies.Setting(requests=20, traces=traces, directory=tmp_path, jobs=1)
    real, made = setting.workload("Fin1"), setting.workload("Fin2")
    assert (real.real, made.real) == (True, False)
    assert "Financial1.ascii" in real.origin
    rows = setting.rows([{"device": "tiny", "workload": real.trace}])
    assert rows[0]["requests.all.count"] == 20
    report = page.Report(studies.hu2011.STUDY, setting, [], "")
    assert "Financial1.ascii" in page.html(report)


def test_better_follows_its_rule():
    verdict = lambda **pairs: study.better(CLAIM, pairs).verdict  # noqa: E731
    assert verdict(a=(1.0, 2.0), b=(1.0, 1.2)) == "agrees"
    assert verdict(a=(1.0, 2.0), b=(1.0, 1.0)) == "agrees"
    assert verdict(a=(1.0, 2.0), b=(1.0, 0.9)) == "agrees in direction"
    assert verdict(a=(1.0, 1.005), b=(1.0, 1.005)) == "disagrees", "no effect has no direction"
    assert verdict(a=(1.0, 1.1), b=(1.0, 0.93)) == "agrees in direction"
    assert verdict(a=(1.0, 1.1), b=(1.0, 0.8)) == "disagrees"
    assert verdict(a=(1.0, 1.0)) == "disagrees"
    assert verdict(a=(0.0, 5.0)) == "agrees"
    assert verdict(a=(0.0, 0.0)) == "disagrees"
    assert study.better(CLAIM, {"a": (2.0, 3.0)}).ours == "ratio 1.5"


def test_equal_follows_its_rule():
    assert study.equal(CLAIM, {"a": (1.0, 1.01), "b": (1.0, 0.99)}).verdict == "agrees"
    assert study.equal(CLAIM, {"a": (1.0, 1.1), "b": (1.0, 0.91)}).verdict == "agrees in direction"
    assert study.equal(CLAIM, {"a": (1.0, 1.1)}).verdict == "disagrees"
    tolerant = study.equal(CLAIM, {"a": (1.0, 1.1)}, within=0.2)
    assert (tolerant.verdict, tolerant.rule) == ("agrees", "within 20%")
    assert study.equal(CLAIM, {"a": (1.0, 1.01)}).rule == ""


def test_a_claim_that_can_be_nearly_true_needs_a_rule():
    with pytest.raises(ValueError, match="the claim 'it is so' needs its rule"):
        study.holds(CLAIM, False, "0.9", nearly=True)
    assert study.holds(CLAIM, False, "0.9", nearly=True, rule="over 1").rule == "over 1"


def test_number_follows_its_rule():
    assert study.number(CLAIM, 1.54, 1.5).verdict == "agrees"
    assert study.number(CLAIM, 1.6, 1.5).verdict == "agrees in direction", "a fifth more than the effect"
    assert study.number(CLAIM, 1.158, 1.054).verdict == "sign only", "15.8% is three times 5.4%"
    assert study.number(CLAIM, 1.10, 1.054).verdict == "agrees in direction", "10% is less than twice 5.4%"
    assert study.number(CLAIM, 1.158, 1.054, unit="x").ours == "1.16x (paper 1.054x, effect +193%)"
    assert study.number(CLAIM, 15.8, 5.4, neutral=0.0, unit=" %").verdict == "sign only"
    assert study.number(CLAIM, 0.46, 0.5).verdict == "agrees"
    assert study.number(CLAIM, 0.54, 0.5).verdict == "agrees"
    assert study.number(CLAIM, 0.44, 0.5).verdict == "agrees in direction"
    assert study.number(CLAIM, 1.015, 1.0).verdict == "agrees", "no effect, within 2%"
    assert study.number(CLAIM, 1.05, 1.0).verdict == "disagrees"
    assert study.number(CLAIM, 3.0, 1.5).verdict == "sign only"
    assert study.number(CLAIM, 0.9, 1.5).verdict == "disagrees"
    assert study.number(CLAIM, 1.0, 1.5).verdict == "disagrees"
    assert study.number(CLAIM, 5.0, 10.0, neutral=0.0).verdict == "agrees in direction"
    assert study.number(CLAIM, 1.15, 17.8).verdict == "disagrees", "a hundredth of the effect"
    assert study.number(CLAIM, 4.9, 10.0, neutral=0.0).verdict == "sign only"
    assert study.number(CLAIM, 2.8, 17.8).verdict == "sign only"
    assert study.number(CLAIM, 12.0, 2.0).verdict == "disagrees", "eleven times the effect"
    assert study.number(CLAIM, 1.005, 1.04).verdict == "disagrees", "less than a hundredth"


def test_the_needs_of_a_claim_follow_from_its_verdicts():
    def needs(*verdicts):
        first, *others = (study.Finding(CLAIM, verdict, "") for verdict in verdicts)
        return page.needs(first, dict(zip(("half", "twice", "batches"), others, strict=False)))

    yes, nearly, sign, no = "agrees", "agrees in direction", "sign only", "disagrees"
    assert needs(yes) == "-"
    assert needs(yes, yes, yes) == "nothing"
    assert needs(no, no, no) == "met nowhere"
    assert needs(no, nearly, sign) == "in direction only"
    assert needs(no, sign, no) == "sign only"
    assert needs(no, no, no, yes) == "agrees with batches"
    assert needs(yes, yes, yes, no) == "not with batches"


def test_batches_keep_everything_but_the_arrival_times():
    single, batches = (workloads.generate("MSN", 32_000, batch=batch) for batch in (1, 8))
    assert np.array_equal(single.lba, batches.lba)
    assert np.array_equal(single.read, batches.read)
    assert batches.moments()["interval_us"] == pytest.approx(single.moments()["interval_us"], rel=0.01)
    gaps = np.diff(batches.arrival)
    assert (gaps >= 0).all()
    # Seven of eight gaps are those within a batch, except where batches overlap.
    assert (gaps == workloads.BATCH_GAP_US * 1000).mean() == pytest.approx(7 / 8, abs=0.06)
    assert (np.diff(single.arrival) == workloads.BATCH_GAP_US * 1000).mean() < 0.01


def test_seeds_change_requests_but_not_moments(tmp_path):
    first, second = (workloads.generate("Ex", 20_000, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.lba, second.lba)
    assert second.moments()["write_kib"] == pytest.approx(first.moments()["write_kib"], rel=0.05)
    setting = studies.Setting(requests=60, seeds=(0, 1), directory=tmp_path, jobs=1)
    found = studies.hu.grid(setting, ["Ex"], {"static": studies.hu.static("s2"), "dynamic": studies.hu.dynamic("s2")})
    by_seed = [sample.of("all us", "dynamic", "Ex") for sample in found.samples]
    assert len(set(by_seed)) == 2
    assert found.of("all us", "dynamic", "Ex") == pytest.approx(statistics.mean(by_seed))
    low, high = found.ranges("all us", "static")["dynamic"][0]
    assert low < high
    assert found.table("all us").column(studies.hu.SPREAD).to_pylist()[0] > 0


def test_a_four_page_write_matches_both_interpretations(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    rows = {row["way"]: row for row in studies.hu.four_page_write(setting)}
    two = rows["two interleaved writes of two dies"]
    # Hu et al. 2011, Figure 19: X = 51.2 us, tPROG = 200 us.
    assert rows["two multi-plane writes of a die"]["command us"] == pytest.approx(604.8)
    assert two["command us"] == pytest.approx(604.8)
    assert two["die us"] == pytest.approx(553.6)
    assert studies.hu.channel_share(setting, "command") == pytest.approx(0.514, abs=0.005)
    assert studies.hu.channel_share(setting, "die") == pytest.approx(0.691, abs=0.005)


def test_verdicts_are_counted(written):
    text = (written / "park2015.html").read_text()
    found = re.search(
        r"Of (\d+) claims: (\d+) agrees, (\d+) agrees in direction, (\d+) sign only, (\d+) disagrees", text
    )
    total, *parts = map(int, found.groups())
    assert total == sum(parts) == 21


def test_a_small_run_of_measured_drives_has_errors_within_limits(written):
    """With 1/48 of the blocks, few rows and half a second, limits are wider than the bars of docs/fidelity.md."""
    limits = {
        "rates": 0.05, "read mean": 0.20, "read p50": 0.15, "read p99": 0.30, "write mean": 0.30, "write p99": 0.75,
        "amplification": 0.05,
    }  # fmt: skip
    shown = fidelity.judged(written / "docs" / "ssdiq2025")
    assert len(shown) == len(ssdiq.DRIVES)
    for title, quantities in shown.items():
        known = {each.quantity: each.error for each in quantities if each.error is not None}
        assert set(known) >= set(limits) - {"amplification"}
        assert not {quantity: error for quantity, error in known.items() if error > limits[quantity]}, title
    # Saturated rates were fitted on a larger device.
    for drive in ssdiq.DRIVES:
        *_, saturated = csv.DictReader(
            (written / "docs" / "ssdiq2025" / f"{drive.device}.csv").read_text().splitlines()
        )
        assert float(saturated["simulated"]) == pytest.approx(drive.loads[-1].writes, rel=0.05), drive.title


def test_static_allocation_waits_like_a_queue_per_die(tmp_path):
    """Compare pattern D with M/D/1, which is independent of the simulator."""
    setting = studies.Setting(directory=tmp_path, jobs=1)
    rows = studies.park2015._times(setting, [{"words": studies.park2015._words("D", setting, load=0.5)}])
    # A write takes 1 ms, and 4 us on the bus. In a queue with deterministic service and load 0.5, it waits half a
    # service.
    assert rows[0]["static write us"] == pytest.approx(1004 * 1.5, rel=0.03)
    assert rows[0]["dynamic write us"] == pytest.approx(1004, rel=0.02)


def test_closed_forms_of_cleaning_match_the_papers():
    # Desnoyers 2014: at a spare factor of 0.105, FIFO has a write amplification of about 5.
    assert 1 / agrawal.fifo_efficiency(0.105) == pytest.approx(5.0, rel=0.02)
    assert agrawal.fifo_efficiency(0.545) == pytest.approx(0.843, abs=0.002)
    # 54% of the space of Table 3 gives 12 of 63 valid pages.
    spare = agrawal.effective_spare(256, 0.85 * 0.54, 12)
    assert (1 - agrawal.fifo_efficiency(spare)) * agrawal.DATA_PAGES == pytest.approx(12, abs=0.3)


def test_the_time_of_a_collection_is_that_of_its_operations(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    ways = ({}, agrawal2008.ANY_PAGE)
    points = [agrawal.device(setting) | way | {"workload": agrawal.tpcc(setting)} for way in ways]
    # A read and a program for each valid page, with or without transfers, and an erase.
    for row, each in zip(setting.rows(points), (25 + 2 * 105.6 + 200, 25 + 200), strict=True):
        valid = (1 - row["gc.efficiency"]) * agrawal.DATA_PAGES
        assert row["gc.victims"] > 100
        assert agrawal.time_of_collection(row) == pytest.approx((valid * each + 1500) / 1000, rel=0.01)


def test_moves_that_queue_with_requests_add_less_latency(written_reports):
    tables = [part.exhibit.data.to_pylist() for part in written_reports["agrawal2008"].parts]
    (rows,) = ({row["case"]: row for row in table} for table in tables if "added latency" in table[0])
    ahead, queued = rows["Poisson, by copy-back"], rows["Poisson, queued, by copy-back"]
    assert queued["added latency"] < 0.05 < ahead["added latency"]
    assert queued["migrations per package"] == ahead["migrations per package"] > 0
    assert queued["busy"] < 0.5, "below saturation"


def test_writes_to_a_small_range_leave_blocks_with_few_valid_pages(written_reports):
    tables = [part.exhibit.data.to_pylist() for part in written_reports["agrawal2008"].parts]
    (rows,) = (table for table in tables if "victims per package" in table[0])
    by = {row["workload"]: row["efficiency"] for row in rows if row["copies"] == "inter-plane"}
    assert by["TPC-C, uniform"] < by["TPC-C"] < by["TPC-C, DiskSim's range"]
    words = agrawal.tpcc(studies.Setting(footprint=0.5), size=agrawal2008.RANGE)
    assert f"size={agrawal2008.RANGE // 2 // 8192 * 8192} io_size=100000%" in words, "all events, in a scaled range"


def test_the_page_says_whether_gangs_collect_garbage(root, tmp_path):
    def counts_and_caption(**device):
        setting = studies.Setting(quick=True, jobs=1, directory=tmp_path, device=device)
        shown = agrawal2008.table_4(setting)
        return shown.data.column("collected blocks").to_pylist(), shown.caption

    counts, caption = counts_and_caption()
    none = "no run collects a block"
    assert counts == [0] * 10
    assert none in caption
    # A full SSD has just as many free blocks.
    counts, caption = counts_and_caption(**{"gc.soft_threshold": 3})
    assert all(counts)
    assert none not in caption
    assert f"10 of 10 runs collect garbage, at most {max(counts)} blocks." in caption
    pages = root / "docs" / "studies"
    rows = list(csv.DictReader((pages / "agrawal2008" / "table-4.csv").read_text().splitlines()))
    assert [row["collected blocks"] for row in rows] == ["0"] * 10
    assert none in (pages / "agrawal2008.md").read_text()


def test_queues_are_those_of_the_packages(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    calm, busy = (agrawal.queues(setting, name) for name in ("TPC-C", "IOzone"))
    assert 0 < calm["queue"] < 0.1 < busy["queue"]
    assert busy["longest queue"] > calm["longest queue"] > 0


def test_traces_of_agrawal_are_replayed_and_repeated(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    lines = [f"{10 * i + 5:.3f} 0 {64 * i} 64 0" for i in range(100)]
    (traces / "ssd-iozone.trace").write_text("\n".join(lines) + "\n")
    setting = studies.Setting(traces=traces, directory=tmp_path, jobs=1, quick=True)
    once, often = agrawal.load("IOzone", setting), agrawal.repeated_iozone(setting)
    assert "ssd-iozone.trace" in once.origin
    assert "generated" in agrawal.load("Postmark", setting).origin
    device = fg.Device("tiny")
    counts = [fg.run(device, trace).summary.requests.write.count for trace in (once.workload, often)]
    assert counts == [100, 575]
    made = studies.Setting(quick=True, directory=tmp_path)
    count = int(agrawal.load("IOzone", made).workload.rpartition("=")[2])
    assert int(agrawal.repeated_iozone(made).rpartition("=")[2]) == round(5.75 * count)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("scenario", yoo.TABLE_4.values(), ids=list(yoo.TABLE_4))
def test_scenarios_have_the_sizes_of_the_table(scenario, kind):
    sizes = scenario.sizes(kind)
    assert sum(sizes.values()) == 100
    mean = sum(size * share for size, share in sizes.items()) / 100
    # Shares are whole percents.
    assert mean == pytest.approx(scenario.mean_kib(kind), rel=0.03)
    if kind == "write":
        assert sum(share for size, share in sizes.items() if 4 < size < 64) == 24


def test_scenarios_are_scaled_with_their_footprint(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    rows = setting.rows([yoo.device() | {"workload": yoo.scenario(setting, "WIN7")}])
    table = yoo.TABLE_4["WIN7"]
    assert rows[0]["requests.all.count"] == round(table.requests * yoo.QUICK)
    share = rows[0]["requests.read.count"] / rows[0]["requests.all.count"]
    assert share == pytest.approx(table.reads / 100, abs=4 * math.sqrt(0.25 / rows[0]["requests.all.count"]))
    assert "size=9919m" not in yoo.scenario(studies.Setting(), "WIN7")
    assert "size=5078m" in yoo.scenario(studies.Setting(), "WIN7")
    assert "size=10157m" in yoo.scenario(studies.Setting(footprint=2.0), "WIN7")


def test_scenarios_can_write_each_address_once(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path).varied("written once")
    trace = yoo.scenario(setting, "WIN7", yoo.Reading(depth=4))
    assert "depth=4" in str(trace)
    table = yoo.TABLE_4["WIN7"]
    place = next((tmp_path / "workloads").glob("WIN7-once*"))
    rows = [tuple(map(int, line.split())) for line in place.read_text().splitlines()]
    writes = [(lba, sectors) for _, _, lba, sectors, is_read in rows if not is_read]
    assert len(rows) == round(table.requests * yoo.QUICK)
    spans = sorted(writes)
    assert spans[0][0] == 0
    assert all(a + length == b for (a, length), (b, _) in itertools.pairwise(spans)), "no gap, no overlap"
    goes_on = sum(a + length == b for (a, length), (b, _) in itertools.pairwise(writes))
    share = table.sequential / 100
    assert goes_on / len(writes) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / len(writes)))
    row = setting.rows([yoo.device() | {"workload": trace}])[0]
    assert row["updates.covered"] == row["updates.uncovered"] == 0
    # Other readings are unchanged.
    assert "zoned" not in str(yoo.scenario(setting, "WIN7", yoo.Reading(hot=None)))


@pytest.mark.parametrize("window", [1, 16])
def test_scenarios_can_write_almost_in_order(window, tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    yoo.scenario(setting, "WIN7", yoo.Reading(once=True, window=window))
    (place,) = (tmp_path / "workloads").glob(f"WIN7-once-within-{window}-*")
    rows = [tuple(map(int, line.split())) for line in place.read_text().splitlines()]
    writes = [(lba, sectors) for _, _, lba, sectors, is_read in rows if not is_read]
    assert all(a + length == b for (a, length), (b, _) in itertools.pairwise(sorted(writes))), "no gap, no overlap"
    assert writes != sorted(writes)
    written = 0
    for lba, sectors in writes:
        # A run of writes is moved as a whole, and behind runs that are.
        assert abs(lba - written) < (window + 3) * 2048
        written += sectors


def test_the_order_of_places_decides_the_amplification_of_fast(tmp_path):
    setting = studies.Setting(jobs=1, directory=tmp_path)
    readings = {window: yoo.Reading(once=True, window=window) for window in (1, 16, None)}
    points = [
        yoo.device(yoo.fast()) | {"workload": yoo.scenario(setting, "XEN", reading)} for reading in readings.values()
    ]
    amplification = [row["write_amplification"] for row in setting.rows(points)]
    assert amplification == sorted(amplification)
    assert amplification[0] - 1 < 0.5 * (amplification[2] - 1)


def test_writes_to_kinds_of_log_blocks_are_columns(tmp_path):
    setting = studies.Setting(quick=True, jobs=1, directory=tmp_path)
    for scheme, kinds in ((yoo.fast(), ("sequential", "random")), (yoo.last(), ("sequential", "hot", "cold"))):
        # The first writes go to data blocks.
        twice = {"precondition": "rw=write bs=1m size=8m", "workload": "rw=write bs=1m size=8m number_ios=8"}
        row = setting.rows([yoo.device(scheme) | twice])[0]
        shares = [yoo.log_share(row, kind) for kind in kinds]
        assert shares == [1.0] + [0.0] * (len(kinds) - 1)


def test_the_demerit_of_a_shift_is_the_shift():
    shares = [0.1, 0.5, 0.9]
    curve = yoo2013._curve(yoo2013.TABLE_5["VSSIM"], shares)
    assert curve == pytest.approx([6.7 + 0.4 * 0.8, 7.5, 8.3 + 0.6 * 5.3])
    assert yoo2013.demerit(curve, [value + 0.25 for value in curve]) == pytest.approx(0.25)


def test_rows_with_jitter_are_beside_those_of_table_5(root, tmp_path):
    shown = yoo2013.table_5(studies.Setting(quick=True, jobs=1, directory=tmp_path))
    rows = shown.data.to_pylist()
    demerit = "demerit from the X25-M"
    drive, _vssim, ours, *jittered, reads = rows
    assert drive[demerit] == 0
    assert reads[demerit] is None
    assert [tuple(row[key] for key in ("program", "interrupt", "jitter")) for row in jittered] == list(yoo2013.JITTER)
    for row in jittered:
        # A record has four requests, each with an interrupt to receive it and one to complete it.
        program = 4 * (row["program"] - ours["program"]) / 1000
        assert row["mean"] == pytest.approx(ours["mean"] + program + 8 * row["interrupt"] / 1000, rel=0.05)
        assert row["min"] > ours["min"] + program
        assert row["max"] - row["min"] > 10 * (ours["max"] - ours["min"])
    # The reason: firmware lengthens records that are too long without it.
    assert ours["mean"] > drive["mean"]
    assert len(shown.findings) == 5, "a row that is fitted to the drive has no verdict"
    pages = root / "docs" / "studies"
    printed = list(csv.DictReader((pages / "yoo2013" / "table-5.csv").read_text().splitlines()))
    closest = min((row for row in printed if row["jitter"]), key=lambda row: float(row[demerit]))
    told = (
        f"Closest to the X25-M are programs of {closest['program']} us and interrupts of {closest['interrupt']} us "
        f"with a jitter of {closest['jitter']}: the demerit is"
    )
    assert told in (pages / "yoo2013.md").read_text()


def test_a_thread_that_polls_has_the_throughput_of_its_bounds():
    # One channel and one chip: both pages are transferred one after another, and the planes are programmed in turn.
    yoo2013._POLLED["x"] = (1, 1, 2, 100.0, 800.0)
    try:
        assert yoo2013.polled("x", switch=0.0, holds_transfers=False) == pytest.approx(1e6 / 950, rel=0.06)
        held = yoo2013.polled("x", switch=0.0, holds_transfers=True)
    finally:
        del yoo2013._POLLED["x"]
    # Each plane is busy for 900 us per request, and the thread waits for it.
    assert 900 <= 1e6 / held <= 1000


def test_recorded_traces_of_vssim_are_replayed(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    lines = ["arrival_ps,operation,lba,sectors,fua,latency_ps"]
    lines += [f"{index * 10**9},{'write' if index % 2 else 'read'},{8 * index},8,0,1000" for index in range(40)]
    (traces / "install.csv").write_text("\n".join(lines) + "\n")
    setting = studies.Setting(traces=traces, directory=tmp_path, jobs=1, quick=True)
    (load,) = yoo.recorded(setting)
    assert load.writes == (4096,) * 20
    assert "install.csv" in load.origin
    row = setting.rows([yoo.device() | {"workload": load.workload}])[0]
    assert (row["requests.read.count"], row["requests.write.count"]) == (20, 20)
    assert len(yoo.recorded(studies.Setting(quick=True))) == 4
    shown = yoo2013.figure_10(setting)
    assert shown.findings[0].ours == "100% (install) to 100%"


def test_a_markdown_page_has_verdicts_reasons_and_data():
    why = "because of {figure-1 | x | a, b} and {figure-1@twice the footprint | x | a, b}"
    claims = [study.Claim("a < b | c.", "Section 1", "2x", why), study.Claim("d.", "Section 2", why="slow")]
    exhibit = study.Exhibit(
        pa.table({"x": [1.23456, None], "y": ["a, b", "c"]}), drawing.lines,
        [
            study.number(claims[0], 1.5, 2.0, unit="x"),
            study.holds(claims[1], True, "a text of many words", rule="within 5%"),
        ],
        "Caption.",
    )  # fmt: skip
    known = study.Study("name", "Title", "Author, 2000", ["About."], [], reasons={"slow one": "slow"})
    entry = study.Entry("figure-1", "Figure 1", lambda: exhibit)
    repeat = study.Exhibit(
        pa.table({"x": [2.0, None], "y": ["a, b", "c"]}), drawing.lines,
        [study.Finding(each, "disagrees", "") for each in claims], "",
    )  # fmt: skip
    part = page.Part(entry, exhibit, {"twice the footprint": repeat})
    part.svg = "<svg>"
    report = page.Report(known, studies.Setting(), [part], "floatgate study name")
    files = page.markdown(report)
    assert list(files) == ["name.md", "name/claims.csv", "name-figure-1.svg", "name/figure-1.csv"]
    assert files["name/figure-1.csv"] == 'x,y\n1.235,"a, b"\n,c\n'
    text = files["name.md"]
    assert "|Claim|Paper|Ours|Verdict|2x|Why|" in text
    assert "|a &lt; b \\| c|2x|1.5x|≈|✗|[1](#reasons)|" in text
    assert "|d|||✓ (within 5%)|✗|[slow-one](#why-slow-one)|" in text
    assert "|2x: twice the footprint|0|0|0|2|" in text
    assert "1. because of 1.23 and 2" in text
    assert '- <a id="why-slow-one"></a>**slow-one**: slow' in text
    assert (
        'figure-1,a < b | c.,Section 1,2x,"1.5x (paper 2x, effect -50%)",agrees in direction,,'
        in files["name/claims.csv"]
    )


def test_reasons_take_their_numbers_from_the_data():
    table = pa.table(
        {"name": ["a", "b", "a", "b"], "case": ["x", "x", "y", "y"], "us": [1.0, 2.0, 1.5, 2.5], "n": [None, 1, 2, 3]}
    )
    other = table.set_column(2, "us", pa.array([10.0, 20.0, 30.0, 40.0]))
    tables = {("figure-1", ""): table, ("figure-1", "gc-first"): other}

    def filled(field):
        return reasons.fill(f"{{{field}}}", tables)

    assert filled("figure-1 | us | a; x") == "1"
    assert filled("figure-1@gc-first | us | a; x") == "10"
    assert filled("figure-1@chips=1 | us | a; x") == filled("figure-2 | us | a; x") == reasons.NOT_RUN
    assert filled("figure-1 | us | | range") == "1 to 2.5"
    assert filled("figure-1 | us | x | max") == "2"
    assert filled("figure-1 | us | a; y / x") == "1.5"
    assert filled("figure-1 | us | y / x | range %") == "25.0 to 50.0%"
    assert filled("figure-1 | n | b; x | %") == "100%"
    assert filled("figure-1 | n | 3") == "3", "a number selects a row, too"
    assert filled("figure-1 | n | a; x") == "-", "no value"
    assert filled("figure-1 | n | y / x") == "3", "without the row that has no value"
    for wrong, error in (
        ("figure-1 | ms | a; x", "no column 'ms'"), ("figure-1 | us | c", "no such row"),
        ("figure-1 | us | a", "2 rows and ``"), ("figure-1 | us | a | most", "2 rows and `most`"),
        ("figure-1@gc-first | us | c", "no such row"), ("figure-1 | us | y / a; x", "2 rows over 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            filled(wrong)


#: Text with digits that are names: of parts of papers, of studies, workloads, orders and options.
_NAMES = re.compile(
    r"\b(?:Sections?|Figures?|Tables?|Insight|Approach|formula) \(?[\dIVX]+[\d.]*\)?(?: and \d)?(?: \([a-z]\))?"
    r"|\b(?:S|SSD|Syn|Fin)\d\b|\b(?:hu2011|hu2013|park2015|agrawal2008|yoo2013|X25-M|M/D/1)\b"
    r"|\b[\w./]+\.(?:md|py)\b|\b[a-z_]+\.[a-z_]+ = \w+|'[^']*'"
)


def _digits(claim_texts, reason, cells=frozenset()):
    """Return the numbers of a reason that are neither names, nor of its claims, nor taken from data."""
    text = reasons.FIELD.sub("", reason)
    for name in sorted({*study.VARIANTS, *cells}, key=len, reverse=True):
        text = text.replace(name, "")
    known = set(re.findall(r"\d[\d,.]*\d|\d", " ".join(claim_texts)))
    return [each for each in re.findall(r"\d[\d,.]*\d|\d", _NAMES.sub("", text)) if each not in known]


def _reasons(name):
    """Return the reasons of a module, also those of claims that only real traces have."""
    texts = [value for key, value in vars(getattr(studies, name)).items() if key.startswith("_") and key != "__doc__"]
    return {text for text in texts if isinstance(text, str) and " " in text and text.endswith(".")}


def test_runs_that_are_to_collect_garbage_do(written_reports):
    tables = [part.exhibit.data.to_pylist() for part in written_reports["agrawal2008"].parts]
    (micro,) = (rows for rows in tables if "microbenchmark" in rows[0])
    collecting = [row for row in micro if row["microbenchmark"].startswith(("random write, garbage", "the same"))]
    assert len(collecting) == 3
    assert all(0 < row["efficiency"] < 1 for row in collecting), collecting
    (disksim,) = (rows for rows in tables if "DiskSim us" in rows[0])
    # The job repeats its range until all of its writes are made.
    counts = {row["workload"]: row["requests"] for row in disksim}
    many, few = counts["5 million random writes, garbage collection"], counts["250,000 random writes"]
    assert many == pytest.approx(20 * few, rel=1e-3)


@pytest.mark.parametrize("name", list(commandline.STUDIES))
def test_numbers_of_reasons_are_from_the_data(name, written_reports):
    report = written_reports[name]
    by_reason = {why: [] for why in _reasons(name)}
    cells = {each for part in report.parts for row in part.exhibit.data.to_pylist() for each in row.values()}
    names = {each for each in cells if isinstance(each, str) and len(each) > 2 and re.search("[A-Za-z]", each)}
    for part in report.parts:
        for finding in part.exhibit.findings:
            claim = finding.claim
            by_reason.setdefault(claim.why, []).extend([claim.text, claim.published])
    typed = {why: found for why, texts in by_reason.items() if (found := _digits(texts, why, names))}
    assert not typed


def test_a_typed_number_of_a_reason_is_found():
    assert _digits(["It takes 7.7 times as long."], "It takes 7.7 us under Fin1 (Section 4.1).") == []
    assert _digits(["It takes long."], "With S2 it takes 12.5 us, {figure-1 | us | a} with S3.") == ["12.5"]


@pytest.mark.parametrize("name", list(commandline.STUDIES))
def test_pages_have_the_reasons_with_their_numbers(name, root, written_reports):
    report = written_reports[name]
    text = (root / "docs" / "studies" / f"{name}.md").read_text()
    assert reasons.NOT_RUN not in text
    whys = {finding.claim.why for part in report.parts for finding in part.exhibit.findings} | _reasons(name)
    if report.study.reasons_page != name:
        whys -= set(report.study.reasons.values())
    lines = [re.sub(r"^(?:\d+\. |- .*?\*\*: )", "", line) for line in text.partition("## Reasons")[2].splitlines()]
    for line in filter(None, lines):
        patterns = (re.sub(r"\\\{.*?\\\}", ".+?", re.escape(why)) for why in whys | set(report.study.reasons.values()))
        assert any(re.fullmatch(each, line.replace("&lt;", "<")) for each in patterns), f"run `make studies`: {line}"


def test_the_example_of_park_has_the_times_of_its_operations(tmp_path):
    shown = park2015.figure_2(studies.Setting(quick=True, jobs=1, directory=tmp_path))
    rows = {row["allocation"]: row for row in shown.data.to_pylist()}
    # Reads take 100 us, writes 1 ms. Static allocation waits for 30 reads; the writes arrive after 10 us.
    assert rows["static"]["writes end after, us"] == pytest.approx(30 * 100 + 1000 - 10, abs=1)
    assert rows["dynamic"]["writes end after, us"] == pytest.approx(2 * 1000, abs=1)
    assert rows["dynamic"]["reads end after, us"] == pytest.approx(2 * 100, abs=1)
    assert [rows[scheme]["pages read in parallel"] for scheme in ("static", "dynamic")] == [3, 2]
    diagram = shown.draw()
    assert diagram.count("<svg") == diagram.count("</svg>") == 1
    assert "static allocation" in diagram
    assert "dynamic allocation" in diagram


def test_short_results_have_the_unit_of_the_paper():
    def short(value, published, **options):
        return study.number(study.Claim("", "", published), value, 100.0, neutral=0.0, **options).short

    assert short(12345.6, "100 us", unit=" us") == "12,300"
    assert short(12.3456, "about 100", unit=" us") == "12.3 us"
    assert short(0.4567, "+45%") == "45.7%"
    assert short(1.5, "100x", unit="x") == "1.5x"


def test_a_figure_has_notebook_output(tmp_path):
    shown = studies.park2015.figure_3(studies.Setting(quick=True, jobs=1, directory=tmp_path))
    text = shown._repr_html_()
    assert "<svg" in text
    assert "agrees" in text
    assert statistics.mean(shown.data["static read us"].to_pylist()) > 100


def test_code_of_the_pages_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(root / "examples")
    for name in ("docs/studies/index.md", "docs/traces.md"):
        names = {}
        for block in blocks((root / name).read_text()):
            exec(compile(block, name, "exec"), names)


@pytest.mark.parametrize("name", ["tutorial", "which-policy"])
def test_notebooks_run(name, root):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(root / "docs" / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
