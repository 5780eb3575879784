//! Tests of `floatgate run` with the real program.

use std::fs;
use std::process::Stdio;

use crate::common::{Bench, stderr, validate_summary};
use floatgate_core::sim::rng::Rng;
use serde_json::Value;

/// Job that overwrites the device, which causes garbage collection.
const OVERWRITE: &str = "rw=randwrite bs=4k iodepth=8 number_ios=20000 ioengine=libaio";

/// Returns a result without the section that differs from run to run.
fn without_run(mut summary: Value) -> String {
    summary.as_object_mut().unwrap().shift_remove("run").unwrap();
    summary.to_string()
}

#[test]
fn a_result_conforms_to_the_schema() {
    let bench = Bench::with_device();
    let jobs = "rw=randrw name=mix number_ios=9000 iodepth=4; rw=randtrim name=trims number_ios=200";
    let summary = bench.json(&[jobs, "--precondition", "steady"]);
    validate_summary(&summary);
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["device"]["name"], "test-drive");
    assert_eq!(summary["workload"]["name"], jobs);
    assert_eq!(summary["precondition"]["converged"], true);
    assert_eq!(summary["requests"]["all"]["count"], 9200);
    assert_eq!(summary["requests"]["trim"]["count"], 200);
    assert_eq!(summary["requests"]["flush"]["latency_us"]["mean"], Value::Null);
    assert_eq!(summary["streams"][1]["name"], "trims");
    assert_eq!(summary["streams"][1]["requests"]["all"]["count"], 200);
    let programs = summary["flash"]["programs_by_cause"].as_object().unwrap().values();
    assert_eq!(programs.map(|count| count.as_u64().unwrap()).sum::<u64>(), summary["flash"]["pages"]["programmed"]);
    assert!(summary["write_amplification"].as_f64().unwrap() > 1.0);
    assert!(summary["run"]["wall_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_without_writes_has_no_amplification() {
    let bench = Bench::with_device();
    let summary = bench.json(&["rw=randread number_ios=100", "--precondition", "none"]);
    validate_summary(&summary);
    assert_eq!(summary["write_amplification"], Value::Null);
    assert_eq!(summary["gc"]["efficiency"], Value::Null);
    assert_eq!(summary["unmapped_reads"], 100);
    assert_eq!(summary["precondition"]["mapped"], 0.0);
}

/// Returns the free blocks that a run on the test device gained, the share of the programs that filled the ones it lost
/// in percent, and the share in its warning.
fn free_space(bench: &Bench, job: &str, state: &str, set: &[&str]) -> (i64, f64, Option<f64>) {
    let summary = bench.json(&[&[job, "--precondition", state], set].concat());
    let gained = summary["gc"]["free_blocks_gained"].as_i64().unwrap();
    let units = summary["config"]["geometry"]["pages"].as_u64().unwrap();
    let share = (-gained * units as i64) as f64 / summary["flash"]["units"]["programmed"].as_f64().unwrap();
    let warned = summary["warnings"].as_array().unwrap().iter().find_map(|warning| {
        let text = warning.as_str().unwrap().strip_prefix("write amplification is lower than in a longer run: ")?;
        Some(text.split_once(' ').unwrap().0.parse().unwrap())
    });
    (gained, share * 100.0, warned)
}

#[test]
fn a_run_that_uses_up_free_space_says_so() {
    let bench = Bench::with_device();
    let wide = ["--set", "gc.soft_threshold=10", "--set", "gc.hard_threshold=1", "--set", "geometry.blocks=64"];
    let run = |requests: u32| {
        let job = format!("rw=randwrite bs=4k iodepth=32 number_ios={requests} ioengine=libaio");
        let (gained, _, warned) = free_space(&bench, &job, "steady", &wide);
        (gained, warned.is_some())
    };
    let (gained, is_used_up) = run(3_000);
    assert!(gained < -20 && is_used_up, "{gained}");
    let (later, is_used_up) = run(150_000);
    assert!(later >= gained - 40 && !is_used_up, "{later}");
}

/// If more than one program in a hundred has filled a free block that was not replaced, the result says so from any
/// state, and a run from a state with garbage collection also warns.
#[test]
fn a_result_has_the_share_of_used_up_space() {
    let bench = Bench::with_device();
    let large = ["--set", "geometry.pages=512", "--set", "geometry.blocks=16", "--set", "capacity.spare=0.4"];
    for (state, set, requests, is_used_up) in [
        ("none", &[][..], 20_000, true),
        ("none", &large, 60_000, true),
        ("fill", &[], 20_000, true),
        ("fill", &[], 200_000, false),
        ("fill", &large, 60_000, true),
        ("steady", &[], 20_000, true),
        ("steady", &[], 200_000, false),
        // At most the block that each plane has opened.
        ("steady", &large, 60_000, false),
    ] {
        let job = format!("rw=randwrite norandommap=1 bs=4k iodepth=32 number_ios={requests} ioengine=libaio");
        let (gained, share, warned) = free_space(&bench, &job, state, set);
        assert_eq!(share > 1.0 && gained < -8, is_used_up, "{state}, {requests}: {gained}, {share}");
        let text = bench.good(&[&[job.as_str(), "--precondition", state], set].concat());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = format!("({gained:+} in all planes since the start, {share:.1} % of the programs)");
        assert_eq!(text.contains(&told), is_used_up, "{state}, {requests}: {told} {text}");
        assert_eq!(warned.is_some(), is_used_up && state == "steady", "{state}, {requests}: {told}");
        assert!(warned.is_none_or(|printed| (share - printed).abs() <= 0.05), "{state}, {requests}: {told}");
    }
    // Overwriting in order leaves invalid blocks, so nothing is moved, and a longer run is amplified as little.
    let job = "rw=write bs=64k iodepth=8 ioengine=libaio io_size=150%";
    let (gained, share, _) = free_space(&bench, job, "fill", &[]);
    assert!(share > 10.0 && gained < -8, "{gained}");
    assert!(!bench.good(&[job]).contains("% of the programs"));
}

#[test]
fn a_run_without_measured_requests_has_a_warning() {
    let bench = Bench::with_device();
    let arguments = ["rw=randread number_ios=10 ramp_time=100", "--precondition", "none"];
    let summary = bench.json(&arguments);
    validate_summary(&summary);
    assert_eq!(summary["measured_s"], 0.0);
    assert!(summary["warnings"][0].as_str().unwrap().contains("no request completed in the measured part"));
    assert_eq!(summary["utilization"]["dies"]["idle"]["mean"], Value::Null);
    assert_eq!(summary["requests"]["all"]["iops"], Value::Null);
    let page = String::from_utf8(bench.run(&[&arguments[..], &["--details"]].concat()).stdout).unwrap();
    assert!(page.contains("cells -, held for transfers -"), "{page}");
    // Preconditioning is not part of the result.
    let summary = bench.json(&[arguments[0], "--precondition", "fill"]);
    assert_eq!(summary["flash"]["pages"]["read"], 0);
    assert_eq!(summary["utilization"]["dies"]["idle"]["mean"], Value::Null);
}

#[test]
fn wear_is_reported_as_a_share_of_the_endurance() {
    let bench = Bench::with_device();
    let arguments = ["rw=randwrite bs=512 iodepth=8 number_ios=20000", "--set", "nand.endurance=1000"];
    let summary = bench.json(&arguments);
    validate_summary(&summary);
    let most = summary["wear"]["blocks"]["max"].as_u64().unwrap();
    assert_eq!(summary["wear"]["life_used"].as_f64().unwrap(), most as f64 / 1000.0);
    let units = &summary["flash"]["units"];
    let all = units["programmed"].as_u64().unwrap() + units["unfilled"].as_u64().unwrap();
    let touched: u64 = summary["updates"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(summary["write_amplification"].as_f64().unwrap(), all as f64 / touched as f64);
    assert_eq!(bench.json(&[OVERWRITE, "--set", "nand.endurance=0"])["wear"]["life_used"], Value::Null);
    let page = String::from_utf8(bench.run(&[&arguments[..], &["--details"]].concat()).stdout).unwrap();
    assert!(page.contains("% of the endurance used"), "{page}");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let bench = Bench::with_device();
    let run = |arguments: &[&str]| without_run(bench.json(arguments));
    let first = run(&[OVERWRITE]);
    assert_eq!(first, run(&[OVERWRITE]));
    assert_ne!(first, run(&[OVERWRITE, "--seed", "2"]));
}

#[test]
fn an_override_changes_the_result() {
    let bench = Bench::with_device();
    let (plain, changed) = (bench.json(&[OVERWRITE]), bench.json(&[OVERWRITE, "--set", "gc.victim=fifo"]));
    assert_eq!(plain["config_digest"], plain["device"]["digest"]);
    assert_eq!(changed["device"], plain["device"]);
    assert_ne!(changed["config_digest"], plain["config_digest"]);
    assert_eq!(changed["config"]["gc"]["victim"], "fifo");
    assert_ne!(changed["write_amplification"], plain["write_amplification"]);
}

#[test]
fn a_workload_can_precondition() {
    let bench = Bench::with_device();
    let summary = bench.json(&["rw=randread number_ios=1000", "--precondition", "rw=write size=50%"]);
    assert_eq!(summary["precondition"]["requested"], "rw=write size=50%");
    let mapped = summary["precondition"]["mapped"].as_f64().unwrap();
    assert!((mapped - 0.5).abs() < 0.001, "{mapped}");
    assert!(summary["unmapped_reads"].as_u64().unwrap() > 300);
    let error = bench.error(2, &["rw=read", "--precondition", "rw=write time_based runtime=1"]);
    assert!(error.contains("number_ios"), "{error}");
}

#[test]
fn the_text_of_a_result_has_the_main_values() {
    let bench = Bench::with_device();
    let jobs = "rw=randrw name=a number_ios=9000 thinktime=1; rw=write name=b number_ios=100";
    let output = bench.run(&[jobs, "--details"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).unwrap();
    let words = ["test-drive", "fill:", "IOPS", "p99.9 ", "a read", "b write", "amplification", "efficiency", "cells"];
    for word in words {
        assert!(page.contains(word), "`{word}` is missing in\n{page}");
    }
}

/// Without details, the text has at most 20 lines, whatever the device and the workloads.
#[test]
fn the_text_of_a_result_is_short() {
    let bench = Bench::new();
    let many = (0..30).map(|number| format!("rw=randrw name=job{number} number_ios=20")).collect::<Vec<_>>().join("; ");
    let flushes = "rw=randrw bs=4k number_ios=2000 iodepth=8 fsync=8 ioengine=libaio";
    let bast = ["--set", "mapping.scheme.bast.logs=2", "--set", "capacity.spare=0.6"];
    for arguments in [
        &["run", "tiny", flushes, "--precondition", "steady", "--out", "D"][..],
        &["run", "tiny", &many, "--set", "faults={}", "--set", "buffer.capacity=1MiB"],
        &[&["run", "tiny", flushes][..], &bast].concat(),
        &["run", "tlc-nvme", flushes, "--precondition", "none"],
    ] {
        let text = bench.good(arguments);
        assert!(text.lines().count() <= 20, "{} lines: {text}", text.lines().count());
        for start in ["device ", "workload ", "precondition ", "measured ", "read ", "time spent on", "limited by"] {
            assert!(text.lines().any(|line| line.starts_with(start)), "{start} is missing: {text}");
        }
        for word in ["no time", "other 0.0 %", "0.0 % +- 0.0 %", "\x1b["] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        let all = bench.good(&[arguments, &["--details"]].concat());
        assert!(all.lines().count() > 20 && all.contains("\nsimulation "), "{all}");
    }
    let text = bench.good(&["run", "tiny", flushes, "--set", "gc.victim=fifo"]);
    assert!(text.starts_with("device         tiny (changed: gc.victim): "), "{text}");
    let text = bench.good(&["run", "tiny", &many]);
    assert!(text.contains(", and 29 others; --details"), "{text}");
}

#[test]
fn merges_of_log_blocks_are_in_the_text() {
    let bench = Bench::with_device();
    let scheme = ["--set", "mapping.scheme.bast.logs=2", "--set", "capacity.spare=0.6"];
    let page = bench
        .good(&[&["rw=randwrite bs=4k number_ios=200", "--precondition", "fill", "--details"][..], &scheme].concat());
    let line = |name: &str| page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{page}"));
    assert!(line("merges ").ends_with(" full"), "{page}");
    assert!(line("log blocks ").ends_with(" reclaimed, of 1.00 logical blocks each"), "{page}");
    assert!(!page.contains("GC             none"), "{page}");
}

#[test]
fn mistakes_have_an_error_and_status_2() {
    let bench = Bench::with_device();
    let says = |arguments: &[&str], words: &[&str]| {
        let error = bench.error(2, arguments);
        for word in words {
            assert!(error.contains(word), "`{word}` is missing in: {error}");
        }
    };
    says(&[OVERWRITE, "--set", "gc.victm=fifo"], &["victm"]);
    says(&[OVERWRITE, "--set", "gc.victim=newest"], &["newest", "greedy"]);
    says(&["rw=randwrite bss=4k"], &["bss"]);
    says(&["bs=4k iodepth=2"], &["bs=4k iodepth=2", "rw="]);
    says(&["missing.csv"], &["missing.csv", "No such file"]);
    says(&["randread"], &["`rw=randread`"]);
    says(&["bs=8k randread"], &["`bs=8k rw=randread`"]);
    says(&[""], &["the workload is empty", "rw=randwrite"]);
    says(&["missing.csv", "--limit", "0"], &["--limit", "from 1"]);
    says(&["missing.csv", "--time-scale", "-1"], &["positive decimal number"]);
    says(&[OVERWRITE, "--seed", "-1"], &["--seed", "from 0"]);
    says(&[OVERWRITE, "--requests", "csv"], &["--out"]);
    says(&[OVERWRITE, "--limit", "3", "--fit", "wrap"], &["--fit, --limit", "traces"]);
    says(&[OVERWRITE, "--precondition", "old"], &["old", "steady", "aged=V"]);
    says(&[OVERWRITE, "--precondition", "aged=0.9"], &["aged=0.9", "at most"]);
    says(&["missing.csv", "--replay", "fast"], &["timed", "asap"]);
    assert!(Bench::new().refused(&["run", "no-such-device", OVERWRITE]).contains("no-such-device"));
}

#[test]
fn errors_about_invalid_lines_have_the_line_number() {
    let bench = Bench::with_device();
    let good = "0,0,4096,W,0.0\n0,8,4096,R,0.001\n";
    let trace = bench.file("bad.spc", &format!("{good}0,16,4096,what,0.002\n0,24,4096,R,0.003\n"));
    let error = bench.error(2, &[&trace, "--format", "spc"]);
    assert!(error.contains("bad.spc") && error.contains("line 3"), "{error}");
    let summary = bench.json(&[&trace, "--format", "spc", "--skip-bad-lines", "1"]);
    assert_eq!(summary["requests"]["all"]["count"], 3);
    assert_eq!(summary["warnings"].as_array().unwrap().len(), 1);
    let trace = bench.file("far.spc", &format!("{good}0,99999999,4096,R,0.002\n"));
    let error = bench.error(2, &[&trace]);
    assert!(error.contains("far.spc") && error.contains("line 3") && error.contains("--fit"), "{error}");
    let summary = bench.json(&[&trace, "--fit", "wrap"]);
    validate_summary(&summary);
    assert_eq!(summary["requests"]["all"]["count"], 3);
    assert_eq!(summary["workload"]["digest"].as_str().unwrap().len(), 16);
}

#[test]
fn warnings_are_printed_and_kept_in_the_result() {
    let bench = Bench::with_device();
    let trace = bench.file("wrap.spc", "0,99999999,4096,R,0.0\n0,8,4096,R,0.001\n");
    let output = bench.run(&[&trace, "--fit", "wrap"]);
    let page = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(stderr(&output).starts_with("warning: ") && stderr(&output).contains("wrapped"), "{}", stderr(&output));
    assert!(page.contains("warnings") && page.contains("wrapped"), "{page}");
}

#[test]
fn every_request_can_be_written_to_a_file() {
    let bench = Bench::with_device();
    let jobs = "rw=randrw name=a,b number_ios=2000 iodepth=4; rw=write name=c bs=16k number_ios=500 rate_iops=10k";
    let output = bench.run(&[jobs, "--out", "new/result", "--requests", "csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(bench.path("new/result/summary.json")).unwrap()).unwrap();
    validate_summary(&summary);
    let csv = fs::read_to_string(bench.path("new/result/requests.csv")).unwrap();
    let (header, lines) = csv.split_once('\n').unwrap();
    let columns = "number,stream,operation,status,lba,sectors,arrival_ns,start_ns,finish_ns,waiting_us,service_us,\
                   latency_us,channels,host_queue_us,link_us,firmware_us,throttle_us,buffer_us,order_us,map_fetch_us,fill_us,\
                   die_us,channel_us,gc_us,rmw_us,bus_us,cell_us,ecc_us,rebuild_us";
    assert_eq!(header, columns);
    let behind = columns.split(',').skip_while(|&column| column != "latency_us").count() - 1;
    let rows: Vec<Vec<&str>> =
        lines.lines().map(|line| line.rsplitn(behind + 11, ',').skip(behind).collect()).collect();
    assert_eq!(rows.len(), 2500);
    assert!(rows.iter().any(|row| row[10].ends_with("\"a,b\"")));
    // The latency is the first column. Six digits after the decimal point are picoseconds.
    let ps = |text: &str| text.replace('.', "").parse::<u128>().unwrap();
    let total: u128 = rows.iter().map(|row| ps(row[0])).sum();
    let mean = total as f64 / rows.len() as f64 / 1e6;
    assert_eq!(summary["requests"]["all"]["latency_us"]["mean"].as_f64().unwrap(), mean);
    let mut latencies: Vec<u128> = rows.iter().map(|row| ps(row[0])).collect();
    latencies.sort_unstable();
    for (key, rank) in [("p50", 1250), ("p99", 2475), ("p99_9", 2498), ("max", 2500)] {
        let exact = latencies[rank - 1] as f64 / 1e6;
        let reported = summary["requests"]["all"]["latency_us"][key].as_f64().unwrap();
        assert!((reported - exact).abs() <= (exact * 0.001).max(0.001), "{key} is {reported}, exactly {exact}");
    }
    for row in &rows {
        assert_eq!(ps(row[0]), ps(row[1]) + ps(row[2]), "{row:?}");
        assert_eq!(ps(row[0]), ps(row[3]) - ps(row[5]), "{row:?}");
    }
    // A second run without --requests removes the requests of the first.
    assert!(bench.run(&[OVERWRITE, "--out", "new/result"]).status.success());
    let files = fs::read_dir(bench.path("new/result")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert_eq!(files, ["digests.json", "report.html", "series.parquet", "summary.json"]);
}

#[test]
fn a_directory_that_is_not_writable_is_an_error() {
    let bench = Bench::with_device();
    bench.file("occupied", "");
    for directory in ["occupied", "occupied/below"] {
        let error = bench.error(1, &[OVERWRITE, "--out", directory]);
        assert!(error.contains("occupied"), "{error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_nothing_behind() {
    let bench = Bench::with_device();
    fs::create_dir(bench.path("full")).unwrap();
    std::os::unix::fs::symlink("/dev/full", bench.path("full/requests.csv")).unwrap();
    let error = bench.error(1, &[OVERWRITE, "--out", "full", "--requests", "csv"]);
    assert!(error.contains("requests.csv") && error.contains("No space left"), "{error}");
    assert_eq!(fs::read_dir(bench.path("full")).unwrap().count(), 1, "only the link");
}

/// A reader that closes a pipe has what it wants, but a result that is printed nowhere would be lost.
#[test]
#[cfg(target_os = "linux")]
fn an_output_that_was_never_open_is_an_error() {
    let bench = Bench::with_device();
    let output = bench.shell("exec \"$@\" >&-", &[OVERWRITE, "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: standard output is closed, so no result could be printed"));
    let output = bench.shell("exec \"$@\" >/dev/null", &[OVERWRITE, "--json"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
#[cfg(unix)]
fn a_closed_output_is_not_a_failure() {
    let bench = Bench::with_device();
    let mut child =
        bench.command(&[OVERWRITE, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_has_a_result() {
    let bench = Bench::with_device();
    let arguments = ["rw=randwrite number_ios=1g", "--out", "part", "--requests", "csv", "--json"];
    // A growing file shows that the run has started.
    let output = bench.interrupted(&arguments, "part/requests.csv");
    // The message appears once, and no other.
    assert_eq!(stderr(&output).trim(), "ending: outstanding requests complete; press Ctrl-C again to stop at once");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    validate_summary(&summary);
    assert_eq!(summary["complete"], false);
    assert!(summary["warnings"][0].as_str().unwrap().contains("interrupted"));
    assert_eq!(fs::read(bench.path("part/summary.json")).unwrap(), output.stdout);
    let lines = fs::read_to_string(bench.path("part/requests.csv")).unwrap().lines().count();
    assert_eq!(summary["requests"]["all"]["count"], lines as u64 - 1);
}

/// The counters start again at the end of `ramp_time`, while suspended programs have time left that was counted before.
#[test]
fn operations_that_are_suspended_after_the_ramp_keep_utilization_within_bounds() {
    let job =
        "rw=randrw norandommap=1 bs=4k rate_iops=5000,35000 rate_process=poisson runtime=0.1 time_based ramp_time=0.3";
    let device = ["geometry.channels=2", "geometry.blocks=16", "capacity.logical=2GiB"];
    let bench = Bench::calling(&["run", "tlc-direct"], &[]);
    for seed in ["1", "2"] {
        let overrides = device.iter().flat_map(|over| ["--set", over]);
        let arguments = ["--precondition", "steady", "--seed", seed, "--json"].into_iter().chain(overrides);
        let output = bench.run(&[job].into_iter().chain(arguments).collect::<Vec<_>>());
        assert!(output.status.success(), "{}", stderr(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        for (of, part) in [("channels", "data"), ("dies", "cell"), ("dies", "register_held")] {
            let share = &summary["utilization"][of][part];
            let [min, max] = ["min", "max"].map(|key| share[key].as_f64().unwrap());
            assert!((0.0..=1.0).contains(&min) && (0.0..=1.0).contains(&max), "{of}, {part}: {share}");
        }
    }
}

/// Reads of an empty device take no simulated time, so a time limit never ends them.
#[test]
fn a_run_whose_time_does_not_advance_is_refused() {
    let bench = Bench::with_device();
    let output = bench.run(&["rw=randread bs=4k time_based=1 runtime=1", "--precondition", "none"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("without any simulated time passing") && said.contains("--precondition fill"), "{said}");
}

/// Two million programs of 100 seconds each take longer than the simulated clock can represent.
#[test]
fn a_run_that_never_ends_is_refused() {
    let bench = Bench::with_device();
    let job = "rw=randwrite norandommap=1 bs=4k iodepth=32 number_ios=2m";
    let output = bench.run(&[job, "--precondition", "none", "--set", "nand.program=100s"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("212 days of simulated time") && said.contains("runtime"), "{said}");
}

#[test]
fn a_value_after_a_blank_instead_of_an_equals_sign_is_an_error() {
    let bench = Bench::with_device();
    let error = bench.error(2, &["rw=read number_ios=9", "--out", "x", "--series", "10ms"]);
    assert!(error.contains("`10ms` was taken as a workload") && error.contains("--series=10ms"), "{error}");
    let error = bench.error(2, &["rw=read number_ios=9", "--out", "x", "--timeline", "1ms..2ms"]);
    assert!(error.contains("--timeline=1ms..2ms"), "{error}");
}

#[test]
fn a_file_as_the_result_directory_is_refused() {
    let bench = Bench::with_device();
    bench.file("taken", "");
    let error = bench.error(1, &["rw=read number_ios=9", "--out", "taken"]);
    assert!(error.contains("--out taken: a file of that name exists") && error.contains("another name"), "{error}");
}

#[test]
fn writes_smaller_than_a_page_are_a_warning_in_steady_state() {
    let bench = Bench::with_device();
    let run = |bs: &str, state: &str| {
        let job = format!("rw=randwrite bs={bs} number_ios=3000");
        let pages = ["--set", "geometry.page_size=16KiB", "--set", "geometry.mapping_unit=4KiB"];
        let output = bench.run(&[&[&job, "--precondition", state], &pages[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let said = run("4k", "steady");
    assert!(said.contains("stayed empty") && said.contains("smaller than a program"), "{said}");
    assert!(run("4k", "fill").is_empty());
    assert!(!run("16k", "steady").contains("stayed empty"));
}

#[test]
fn buffer_and_firmware_are_reported_if_they_are_modeled() {
    let bench = Bench::with_device();
    let job = "rw=randrw norandommap=1 size=2M bs=4k iodepth=8 number_ios=4000";
    let without = bench.run(&[job, "--details"]);
    assert!(without.status.success(), "{}", stderr(&without));
    let text = String::from_utf8(without.stdout).unwrap();
    assert!(!text.lines().any(|line| line.starts_with("buffer ") || line.starts_with("firmware ")), "{text}");
    let plain = bench.json(&[job]);
    assert!(plain.get("buffer").is_none() && plain.get("firmware").is_none());

    let set = ["--set", "buffer.capacity=1MiB", "--set", "controller.firmware.lookup=100"];
    let output = bench.run(&[&[job, "--details"], &set[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    // Long lines are wrapped.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(" buffer reads hit ") && text.contains(" a power cut would lose up to "), "{text}");
    assert!(text.contains(" firmware 1 core, ") && text.contains(" % of the response time"), "{text}");
    let summary = bench.json(&[&[job], &set[..]].concat());
    validate_summary(&summary);
    let units = |path: &str| summary.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}"));
    let requests = |operation: &str| units(&format!("/requests/{operation}/count"));
    let reads = ["hit", "partial", "miss"].map(|kind| units(&format!("/buffer/reads/{kind}")));
    assert_eq!((reads.iter().sum::<u64>(), reads[1]), (requests("read"), 0));
    assert_eq!(units("/buffer/writes/hit") + units("/buffer/writes/new"), requests("write"));
    assert!(reads[0] > 0 && units("/buffer/volatile_units_peak") <= units("/buffer/capacity_units"));
    assert!(
        summary["write_amplification"].as_f64().unwrap() < 1.0,
        "the buffer of 256 units must merge writes to 512 units"
    );
}

#[test]
fn a_layout_writes_the_data_that_the_workload_reads() {
    let bench = Bench::with_device();
    const READS: &str = "rw=randread bs=4k iodepth=4 number_ios=500";
    let asked = |layout: &str, state: &str| {
        let result = bench.json(&[READS, "--precondition", state, "--prewrite", layout]);
        let pages = result["flash"]["pages"]["read"].as_u64().unwrap();
        (pages, result["precondition"]["requested"].as_str().unwrap().to_owned(), result)
    };
    // Without a layout, the data was never written, and the controller completes the reads without flash.
    let (pages, state, _) = asked("none", "none");
    assert_eq!((pages, state.as_str()), (0, "none"));
    for layout in ["even", "allocation"] {
        let (pages, state, result) = asked(layout, "invalid=0.5");
        assert_eq!(pages, 500, "{layout}");
        let how = if layout == "even" { "evenly" } else { "by allocation" };
        assert!(
            state.starts_with("invalid=0.5, with ") && state.ends_with(&format!("of read data prewritten {how}")),
            "{state}"
        );
        let mapped = result["precondition"]["mapped"].as_f64().unwrap();
        assert!(mapped > 0.0 && mapped < 0.2, "{mapped}");
    }
    let says = |arguments: &[&str], words: &str| {
        let output = bench.run(arguments);
        assert!(!output.status.success() && stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    };
    says(&[READS, "--layout", "even"], "'--prewrite'");
    says(&[READS, "--precondition", "stale=0.5"], "`stale=` is now `invalid=`");
    says(&[READS, "--prewrite", "even"], "--precondition fill writes all data");
    says(
        &[READS, "--prewrite", "odd", "--precondition", "none"],
        "invalid value `odd`: expected none, even or allocation",
    );
    let endless = "rw=randread bs=4k runtime=1s time_based";
    says(&[endless, "--precondition", "none", "--prewrite", "even"], "`runtime` cannot end it");
}

/// Options that no decision of the run consulted are named, with the reason, and no others.
#[test]
fn changed_options_without_effect_are_named() {
    let bench = Bench::calling(&["run", "tiny"], &[]);
    let named = |job: &str, state: &str, options: &[&str]| -> Vec<String> {
        let sets = options.iter().flat_map(|option| ["--set", option]);
        let summary = bench.json(&[job, "--precondition", state].into_iter().chain(sets).collect::<Vec<_>>());
        let warnings = summary["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
        warnings.filter_map(|text| text.strip_prefix("no effect: ")).map(str::to_owned).collect()
    };
    let (few, many) = ("rw=randrw bs=4k number_ios=1000", "rw=randwrite bs=4k number_ios=20000 norandommap=1");
    let victim = "gc.victim: no garbage was collected; start from --precondition steady";
    assert_eq!(named(few, "fill", &["gc.victim=fifo"]), [victim]);
    assert_eq!(named(few, "fill", &["gc.victim={d-choices={d=3}}"]), [victim]);
    assert_eq!(named(few, "fill", &["gc.victim=greedy"]), [""; 0], "nothing was changed");
    // Preconditioning to the steady state chose victims, even if the run does not.
    for (job, state) in [(few, "steady"), (many, "fill")] {
        assert_eq!(named(job, state, &["gc.victim=fifo", "gc.wear=least-erased", "nand.erase=1ms"]), [""; 0]);
    }
    let unread = "no page was read; reads of unwritten data need none: start from --precondition fill";
    let idle = ["nand.read=99us", "nand.erase=1ms", "nand.program=9ms", "scheduler=read-first"];
    let unprogrammed = "nand.program: no page was programmed; the workload needs writes that reach flash";
    let unserved = "scheduler: no page was read for the host; reads of unwritten data need none: start from \
                    --precondition fill";
    let unerased = "nand.erase: no block was erased; start from --precondition steady";
    let expected = [unerased, &format!("nand.read: {unread}"), unserved, unprogrammed];
    assert_eq!(named("rw=randread bs=4k number_ios=100", "none", &idle), expected);
    let expected = [unerased, unprogrammed];
    assert_eq!(named("rw=randread bs=4k number_ios=100", "fill", &idle), expected);
    // Before the measured part, anything may have happened.
    let ramp = "rw=randread bs=4k number_ios=9 ramp_time=1us";
    assert_eq!(named(ramp, "fill", &["gc.victim=fifo"]), [""; 0]);
}

/// All requests complete within the ramp time. The trim starts garbage collection that ends after it.
#[test]
fn a_ramp_time_that_covers_every_request_is_a_warning() {
    let bench = Bench::calling(&["run"], &[]);
    let read = "tiny|rw=read number_ios=1 ramp_time=1ms|--set|host.link_latency=10us";
    let trim = "tiny|rw=randtrim number_ios=1 ramp_time=1us|--precondition|steady|--seed|1762|--set|capacity.spare=0.3|\
                --set|gc.trigger=lazy";
    for run in [read, trim] {
        let arguments: Vec<&str> = run.split('|').collect();
        let summary = bench.json(&arguments);
        assert_eq!(summary["requests"]["all"]["count"], 0, "{run}");
        let warning = summary["warnings"][0].as_str().unwrap();
        assert!(
            warning.starts_with("no request completed in the measured part: the workload ended within its ramp_time")
        );
    }
}

/// Cores process requests of the ramp time after the measured part has started.
#[test]
fn the_utilization_of_cores_is_at_most_1() {
    let bench = Bench::with_device();
    let job = "rw=read number_ios=2 ramp_time=1us";
    let summary = bench.json(&[job, "--precondition", "none", "--set", "controller.firmware.lookup=1000"]);
    let utilization = summary["firmware"]["utilization"].as_f64().unwrap();
    assert!(utilization > 0.0 && utilization <= 1.0, "{utilization}");
}

/// A read-only device refuses writes at once, which must not make it appear faster.
#[test]
fn refused_requests_are_not_in_throughput_and_latencies() {
    let bench = Bench::with_device();
    let job = "rw=randwrite bs=4k iodepth=4 number_ios=20000 norandommap=1";
    let summary = bench.json(&[job, "--precondition", "fill", "--set", "faults.erase_rate=1"]);
    let all = &summary["requests"]["all"];
    let (served, refused) = (all["count"].as_u64().unwrap(), all["errors"].as_u64().unwrap());
    assert_eq!(served + refused, 20_000);
    assert!(refused > 1000, "{refused}");
    let rate = served as f64 / summary["measured_s"].as_f64().unwrap();
    assert!((all["iops"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9);
    assert!(all["latency_us"]["min"].as_f64().unwrap() > 1.0, "refused requests must not count");
    let warnings: Vec<&str> = summary["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(warnings.iter().any(|warning| warning.contains("requests were not served")), "{warnings:?}");
    assert!(summary["write_amplification"].as_f64().unwrap() >= 1.0);
}

/// Random small devices whose programs fail, measured from a random time on. Most of them become read-only, often
/// with many writes outstanding, which then fail.
#[test]
fn write_amplification_and_utilization_stay_within_bounds_after_the_ramp() {
    let bench = Bench::calling(&["run", "tiny"], &[]);
    let mut rng = Rng::new(1, "ramps");
    let mut pick = |values: &[&'static str]| values[rng.below(values.len() as u64) as usize];
    let (mut measured, mut read_only) = (0, 0);
    for case in 0..100 {
        let job = format!(
            "rw={} bs={} iodepth={} number_ios=600 ramp_time={}ms",
            pick(&["write", "randwrite norandommap=1", "randrw norandommap=1"]),
            pick(&["2k", "16k", "64k", "256k"]),
            pick(&["1", "16", "64", "256"]),
            pick(&["1", "3", "8", "15", "25", "40"]),
        );
        let overrides = [
            format!("faults.program_rate={}", pick(&["0.0005", "0.002", "0.005", "0.02", "0.05"])),
            format!("geometry.channels={}", pick(&["1", "2"])),
            format!("geometry.blocks={}", pick(&["16", "24", "32"])),
            format!("geometry.pages={}", pick(&["8", "16", "32"])),
            format!("capacity.spare={}", pick(&["0.4", "0.5"])),
            "geometry.chips=1".to_owned(),
        ];
        let seed = case.to_string();
        let state = pick(&["none", "fill"]);
        let overrides = overrides.iter().flat_map(|over| ["--set", over]);
        let arguments = [&job, "--seed", &seed, "--precondition", state].into_iter().chain(overrides);
        let summary = bench.json(&arguments.collect::<Vec<_>>());
        for key in ["write_amplification", "write_amplification_bytes"] {
            assert!(summary[key].as_f64().is_none_or(|value| value >= 1.0), "{case}: {job}: {key} {}", summary[key]);
        }
        let each = summary["utilization"]["each"].as_object().unwrap().values();
        let shares = each.flat_map(|shares| shares.as_array().unwrap()).map(|share| share.as_f64().unwrap());
        let most = shares.fold(0.0, f64::max);
        assert!(most <= 1.0, "{case}: {job}: utilization {most}");
        measured += u32::from(summary["write_amplification"].is_number());
        read_only += u32::from(summary["faults"]["read_only_since_s"].is_number());
    }
    assert!(measured > 50 && (40..90).contains(&read_only), "{measured} measured, {read_only} read-only");
}

#[test]
fn a_run_lists_its_files_and_the_time_of_its_preparation() {
    let bench = Bench::new();
    let run = ["run", "tiny", "rw=read number_ios=9", "--out", "D", "--requests=csv", "--timeline"];
    let text = bench.good(&run);
    assert!(text.ends_with("\nwritten to     D/report.html, with 5 files next to it\n"), "{text}");
    let text = bench.good(&[&run[..], &["--details"]].concat());
    let files: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("written to")).collect();
    let names =
        ["report.html", "summary.json", "requests.csv", "series.parquet", "timeline.pftrace.gz", "digests.json"];
    assert_eq!(files.len(), names.len(), "{text}");
    for (line, name) in files.iter().zip(names) {
        assert!(line.ends_with(&format!(" D/{name}")) && bench.path("D").join(name).exists(), "{line}");
    }
    assert!(text.contains("\npreparation    ") && text.contains(" of real time\n"), "{text}");
    let text = bench.good(&["run", "tiny", "rw=read number_ios=9"]);
    assert!(!text.contains("written to"), "{text}");
    let drawn = bench.run(&["draw", "D"]);
    assert_eq!(String::from_utf8_lossy(&drawn.stderr), "wrote D/timeline.svg\n");
}
