//! Tests of `floatgate report` and `floatgate compare` with the real program.

use std::fs;
use std::path::Path;

use crate::common::Bench;
use serde_json::Value;

const JOB: &str = "rw=randrw bs=4k iodepth=8 number_ios=2000 norandommap=1";

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_report_can_be_written_again_from_its_summary() {
    let bench = Bench::new();
    bench.good(&["run", "tiny", JOB, "--set", "gc.victim=fifo", "--out", "a"]);
    let page = read(&bench.path("a/report.html"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("data-figure=\"latency-tail\""));
    let command = format!("floatgate run tiny '{JOB}' --set gc.victim=fifo --seed 1");
    assert!(page.contains(&command), "the command that repeats the run is missing");
    assert!(page.contains("<code>gc.victim</code></td><td class=\"text\" data-name=\"here\">fifo</td>"));
    fs::remove_file(bench.path("a/report.html")).unwrap();
    bench.good(&["report", "a"]);
    assert!(read(&bench.path("a/report.html")) == page, "the bytes differ");
    bench.good(&["report", "a", "--out", "b.html"]);
    assert!(read(&bench.path("b.html")) == page);
}

#[test]
fn file_names_are_escaped_in_pages() {
    let bench = Bench::new();
    let name = "<script>alert(1)<!script>.csv";
    fs::write(bench.path(name), "0 0 0 8 1\n1000000 0 8 8 0\n").unwrap();
    bench.good(&["run", "tiny", name, "--format", "ssdsim", "--out", "a"]);
    let page = read(&bench.path("a/report.html"));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    let compared = ["compare", "<script>alert(1)=a", "b=a", "--out", "c.html"];
    bench.good(&compared);
    assert!(!read(&bench.path("c.html")).contains("<script>alert"));
}

#[test]
fn results_that_cannot_be_read_are_refused() {
    let bench = Bench::new();
    bench.good(&["run", "tiny", JOB, "--out", "a"]);
    let summary = read(&bench.path("a/summary.json"));
    let with = |text: String| {
        fs::write(bench.path("a/summary.json"), text).unwrap();
        let errors = [bench.refused(&["report", "a"]), bench.refused(&["compare", "a", "a/summary.json"])];
        assert!(errors.iter().all(|error| error.starts_with("error: a/summary.json: ")), "{errors:?}");
        errors[0].clone()
    };
    assert!(with("{".to_owned()).contains("not JSON"));
    assert!(with("{}".to_owned()).contains("not a result of Floatgate"));
    let other = with(summary.replace("floatgate-summary-2", "floatgate-summary-9"));
    assert!(other.contains("unsupported format `floatgate-summary-9`") && other.contains("run it again"), "{other}");
    assert!(bench.refused(&["explain", "a", "max"]).contains("a/summary.json: unsupported format"));
    let less = with(summary.replace("\"unmapped_reads\"", "\"unmapped_reeds\""));
    assert!(less.contains("missing field `unmapped_reads`") && less.contains("run it again"), "{less}");
    assert!(bench.refused(&["report", "no-such"]).contains("cannot read no-such/summary.json"));
    fs::write(bench.path("a/summary.json"), summary).unwrap();
    for arguments in [&["report", "a", "--out", "none/b.html"][..], &["compare", "x=a", "y=a", "--out", "none/b.html"]]
    {
        let output = bench.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("error: cannot write none/b.html: ") && !error.contains("partial"), "{error}");
    }
}

#[test]
fn a_comparison_shows_ratios_and_warns_of_unknown_noise() {
    let bench = Bench::new();
    for (out, victim) in [("a", "greedy"), ("b", "fifo")] {
        let set = format!("gc.victim={victim}");
        bench.good(&["run", "tiny", JOB, "--precondition", "steady", "--set", &set, "--out", out]);
    }
    let text = bench.good(&["compare", "a", "fifo=b", "--out", "c.html"]);
    assert!(text.lines().next().unwrap().split_whitespace().eq(["a", "fifo"]), "{text}");
    assert!(text.contains("a single run does not show how much results vary"));
    let page = read(&bench.path("c.html"));
    assert!(page.contains("data-figure=\"latency-read-cdf\"") && page.contains("<code>gc.victim</code>"));
    let json: Value = serde_json::from_str(&bench.good(&["compare", "a", "fifo=b", "--json"])).unwrap();
    let value = |out: &str| {
        let summary: Value = serde_json::from_str(&read(&bench.path(out).join("summary.json"))).unwrap();
        summary["write_amplification"].as_f64().unwrap()
    };
    let row = json["metrics"].as_array().unwrap().iter().find(|row| row["metric"] == "write_amplification").unwrap();
    assert_eq!(row["values"][0]["mean"].as_f64(), Some(value("a")));
    assert_eq!(row["values"][1]["ratio"].as_f64(), Some(value("b") / value("a")));
    assert_eq!(row["values"][1]["difference"], "noise_unknown");
    let row = json["metrics"].as_array().unwrap().iter().find(|row| row["metric"] == "gc.efficiency").unwrap();
    assert_eq!((&row["unit"], &row["label"]), (&"share".into(), &"cleaning efficiency".into()));
    let all = bench.good(&["compare", "a", "fifo=b", "--all"]);
    let line = all.lines().find(|line| line.starts_with("gc.efficiency, %")).unwrap();
    assert!(line.ends_with(" pp"), "{line}");
}

/// The table has the metrics that differ most, all metrics, or those that are requested. Names are paths in a summary.
#[test]
fn a_comparison_shows_the_metrics_that_differ_most() {
    let bench = Bench::new();
    for (out, victim) in [("a", "greedy"), ("b", "fifo")] {
        let set = format!("gc.victim={victim}");
        let run = ["run", "tiny", JOB, "--precondition", "steady", "--set", &set, "--out", out];
        bench.good(&[&run[..], &["--seeds", "1,3..4", "--jobs", "2"]].concat());
    }
    let rows =
        |text: &str| text.lines().skip(2).take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let json = bench.json(&["compare", "a", "b"]);
    assert_eq!(json["groups"][0]["seeds"], serde_json::json!([1, 3, 4]));
    let names: Vec<&str> =
        json["metrics"].as_array().unwrap().iter().map(|row| row["metric"].as_str().unwrap()).collect();
    let few = bench.good(&["compare", "a", "b"]);
    assert_eq!(rows(&few).len(), 10, "{few}");
    assert!(
        few.contains(&format!("the 10 of {} metrics that differ most; --all prints all of them", names.len())),
        "{few}"
    );
    let all = rows(&bench.good(&["compare", "a", "b", "--all"]));
    for (line, name) in all.iter().zip(&names) {
        assert!(line.starts_with(name.trim_start_matches("requests.")), "{line}: {name}");
    }
    assert_eq!(all.len(), names.len());
    for name in ["read.latency_us.p99", "requests.read.latency_us.p99"] {
        let one = rows(&bench.good(&["compare", "a", "b", "--metric", name]));
        assert!(one.len() == 1 && one[0].starts_with("read.latency_us.p99 "), "{one:?}");
    }
    let error = bench.refused(&["compare", "a", "b", "--metric", "write amplification"]);
    assert!(error.contains("unknown metric `write amplification`: expected one of"), "{error}");
    assert!(error.contains(" write_amplification,"), "{error}");
}

/// Parallel runs have the results of runs one after another.
#[test]
fn seeds_run_in_parallel() {
    let bench = Bench::new();
    let run = ["run", "tiny", JOB, "--precondition", "steady", "--seeds", "4"];
    let one_by_one = bench.good(&run);
    assert_eq!(bench.good(&[&run[..], &["--jobs", "3"]].concat()), one_by_one);
    let error = bench.refused(&["run", "tiny", JOB, "--jobs", "2"]);
    assert!(error.contains("--seeds"), "{error}");
    let error = bench.refused(&["run", "tiny", "rw=nonsense", "--seeds", "4", "--jobs", "2"]);
    assert!(error.contains("nonsense"), "{error}");
}

#[test]
fn seeds_form_one_group() {
    let bench = Bench::new();
    let text = bench.good(&["run", "tiny", JOB, "--precondition", "steady", "--seeds", "3", "--out", "a"]);
    assert!(text.contains("3 seeds") && text.contains(" +- "), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("device ")).count(), 1, "one summary: {text}");
    assert!(text.contains("written to     a/seed-1/report.html\n               a/seed-2/report.html\n"), "{text}");
    assert!(!text.contains("seed 1\n"), "no line is of one seed: {text}");
    // Without a directory, the text is the same but for the list of files.
    let (shown, _) = text.split_once("written to").unwrap();
    assert_eq!(bench.good(&["run", "tiny", JOB, "--precondition", "steady", "--seeds", "3"]), shown);
    let mean = |of: &dyn Fn(&Value) -> f64| {
        let values: Vec<f64> = (1..=3)
            .map(|seed| of(&serde_json::from_str(&read(&bench.path(&format!("a/seed-{seed}/summary.json")))).unwrap()))
            .collect();
        values.iter().sum::<f64>() / 3.0
    };
    let amplification =
        format!("amplification  {:.3} +- ", mean(&|summary| summary["write_amplification"].as_f64().unwrap()));
    assert!(text.contains(&amplification), "{amplification}: {text}");
    let whole: Value = serde_json::from_str(&bench.good(&["compare", "a", "--json"])).unwrap();
    assert_eq!(whole["groups"][0]["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(whole["groups"].as_array().unwrap().len(), 1);
    // Each bar is the mean over the requests of all seeds, which is computed here from the results.
    bench.good(&["compare", "all seeds=a", "first=a/seed-1", "--out", "c.html"]);
    let page = read(&bench.path("c.html"));
    let figures = page.split("<script id=\"figures\" type=\"application/json\">").nth(1).unwrap();
    let figures: Value = serde_json::from_str(figures.split("</script>").next().unwrap()).unwrap();
    // The third panel has the requests near p99.
    let is_cell = |trace: &&Value| trace["name"] == "cell" && trace["xaxis"] == "x3";
    let cells = figures["attribution"]["data"].as_array().unwrap().iter().find(is_cell).unwrap();
    let bar = |label: &str| {
        let place = cells["y"].as_array().unwrap().iter().position(|name| name == label).unwrap();
        cells["x"][place].as_f64().unwrap()
    };
    let mean_of = |seeds: &[u32]| {
        let of = |seed: &u32| {
            let text = read(&bench.path(&format!("a/seed-{seed}/summary.json")));
            let parts = serde_json::from_str::<Value>(&text).unwrap()["requests"]["read"]["attribution"]["p99"].clone();
            (parts["requests"].as_f64().unwrap(), parts["cell_us"].as_f64().unwrap())
        };
        let all: Vec<(f64, f64)> = seeds.iter().map(of).collect();
        let sum: f64 = all.iter().map(|(requests, us)| requests * us).sum();
        sum / all.iter().map(|(requests, _)| requests).sum::<f64>() / 1e6
    };
    for (label, seeds) in [("read: all seeds", &[1, 2, 3][..]), ("read: first", &[1])] {
        assert!((bar(label) / mean_of(seeds) - 1.0).abs() < 1e-9, "{label}: {} and {}", bar(label), mean_of(seeds));
    }
    assert!(page.contains("each bar is the mean over the requests of all its runs"), "the caption says so");
    // A pattern behind a label, and directories one by one, are the same.
    for arguments in
        [&["compare", "x=a/seed-*", "--json"][..], &["compare", "a/seed-1", "a/seed-2", "a/seed-3", "--json"]]
    {
        let json: Value = serde_json::from_str(&bench.good(arguments)).unwrap();
        assert_eq!(json["metrics"], whole["metrics"], "{arguments:?}");
    }
    // A run with the seed of a result repeats that result.
    let summary: Value = serde_json::from_str(&read(&bench.path("a/seed-2/summary.json"))).unwrap();
    assert_eq!(summary["seed"], 2);
    bench.good(&["run", "tiny", JOB, "--precondition", "steady", "--seed", "2", "--out", "again"]);
    let again: Value = serde_json::from_str(&read(&bench.path("again/summary.json"))).unwrap();
    assert_eq!(summary["distributions"], again["distributions"]);
    assert_eq!(summary["arguments"], again["arguments"]);
    let twice = bench.refused(&["compare", "x=a/seed-2,again"]);
    assert!(twice.contains("are the same run of x, with seed 2"), "{twice}");
}

#[test]
fn invalid_comparisons_are_refused() {
    let bench = Bench::new();
    bench.good(&["run", "tiny", JOB, "--out", "a"]);
    bench.good(&["run", "tiny", "rw=write number_ios=100", "--out", "b"]);
    fs::create_dir(bench.path("empty")).unwrap();
    for (arguments, what) in [
        (&["compare", "a"][..], "nothing to compare a/summary.json with"),
        (&["compare", "a", "empty"], "empty has no summary.json and no seed-*/summary.json"),
        (&["compare", "a", "none"], "cannot read none"),
        (&["compare", "a", "x=none*"], "none*: no path matches"),
        (&["compare", "x=a", "x=b"], "two groups have the label x"),
        (&["run", "tiny", JOB, "--seeds", "0", "--out", "c"], "expected a number of seeds from 1 to 1000"),
    ] {
        let error = bench.refused(arguments);
        assert!(error.contains(what), "{arguments:?}: {error}");
    }
    let output = bench.run(&["compare", "a", "b"]);
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.contains("warning: the workload of b differs from that of a"), "{warnings}");
}
