//! Tests of `floatgate trace` with the real program.

use std::fs;
use std::process::Output;

use crate::common::Bench;
use serde_json::Value;

/// Creates a directory with traces.
fn bench() -> Bench {
    // Two devices, with a write after every two reads, hot and cold addresses, and about a millisecond between
    // requests.
    let line = |n: u64| {
        let (lba, operation) = if n.is_multiple_of(3) { (n % 7 * 8, 'W') } else { (n * 7919 % 5000 * 8, 'R') };
        format!("{},{lba},{},{operation},{:.6}\n", n % 2, 4096 << (n % 2), n as f64 * 0.001 + (n % 5) as f64 * 0.0002)
    };
    let lines: String = (0..4000).map(line).collect();
    Bench::calling(&[], &[("a.spc", &lines), ("b.spc", "0,0,512,R,0\n0,8,512,R,2\n0,16,512,R,1\n")])
}

#[test]
fn info_prints_text_or_json() {
    let bench = bench();
    let text = bench.good(&["trace", "info", "a.spc"]);
    for part in ["spc (certain), times in s", "4,000 of", "read", "write", "footprint", "sorted by time", "device"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let profile: Value = serde_json::from_str(&bench.good(&["trace", "info", "a.spc", "--json"])).unwrap();
    assert_eq!(profile["schema"], "floatgate-profile-1");
    assert_eq!(profile["requests"], 4000);
    assert_eq!(profile["devices"].as_array().unwrap().len(), 2);
    let both: Value = serde_json::from_str(&bench.good(&["trace", "info", "a.spc", "b.spc", "--json"])).unwrap();
    assert_eq!(both[0], profile);
    assert_eq!(both[1]["order"]["sort_window"], 1);
    let text = bench.good(&["trace", "info", "b.spc"]);
    assert!(text.contains("--sort-window 1"), "{text}");
    let text = bench.good(&["trace", "info", "a.spc", "--devices", "select=1", "--limit", "10", "--time-unit", "ms"]);
    assert!(text.contains("10 of") && text.contains("times in ms"), "{text}");
}

#[test]
fn each_command_prints_how_to_read_a_trace_in_bytes() {
    let line = |n: u64| format!("{} 0 {} {} {}\n", n * 1_000_000, n * n % 997 * 4096, n % 4 * 4096 + 4096, n % 2);
    let text: String = (0..500).map(line).collect();
    let bench = Bench::calling(&[], &[("in bytes.trace", &text)]);
    let command = |output: &str| -> String {
        let words: Vec<&str> = output.split_whitespace().collect();
        let words = words.join(" ");
        let start = words.find("`floatgate trace info ").unwrap_or_else(|| panic!("no command: {output}"));
        words[start + 1..].split('`').next().unwrap().to_owned()
    };
    let info = bench.good(&["trace", "info", "in bytes.trace"]);
    let printed = command(&info);
    let (_, format) = printed.split_once(" --format ").unwrap();
    assert!(printed.starts_with("floatgate trace info 'in bytes.trace' --format 'delimited:columns="), "{printed}");
    for arguments in [
        &["run", "tiny", "in bytes.trace"][..],
        &["run", "tiny", "in bytes.trace", "--fit", "wrap"],
        &["trace", "convert", "in bytes.trace", "out.txt", "--to", "mqsim"],
    ] {
        let output = bench.run(arguments);
        assert_eq!(command(&String::from_utf8_lossy(&output.stderr)), printed, "{arguments:?}");
    }
    let format = format.trim_matches('\'');
    let read = bench.good(&["trace", "info", "in bytes.trace", "--format", format, "--json"]);
    let profile: Value = serde_json::from_str(&read).unwrap();
    assert_eq!((profile["requests"].as_u64(), profile["bytes"].as_u64()), (Some(500), Some(500 * 2560 * 4)));
    assert_eq!(profile["warnings"].as_array().map(Vec::len), Some(0), "{profile}");
    bench.good(&["run", "tiny", "in bytes.trace", "--format", format]);
}

#[test]
fn traces_that_cannot_be_analyzed_are_errors() {
    let bench = bench();
    assert!(bench.refused(&["trace", "info", "none"]).contains("none: cannot open the trace"));
    assert!(bench.refused(&["trace", "info", "a.spc", "--fit", "wrap"]).contains("--fit is for replaying"));
    bench.file("bad.spc", "0,0,512,R,1\n0,0,512,?,2\n");
    assert!(bench.refused(&["trace", "info", "bad.spc"]).contains("line 2"));
    let text = bench.good(&["trace", "info", "bad.spc", "--skip-bad-lines", "1"]);
    assert!(text.contains("1 bad line was left out"), "{text}");
    assert!(bench.refused(&["trace", "synth"]).contains("<FILE>"));
    assert!(bench.refused(&["trace", "synth", "a.spc", "-o", "x.txt"]).contains(".json"));
    assert!(bench.refused(&["trace", "synth", "--moments", "read=1"]).contains("`read_size` is needed"));
    assert!(bench.refused(&["trace", "synth", "--moments", "msn", "--limit", "3"]).contains("--limit is for traces"));
    assert!(bench.refused(&["trace", "synth", "a.spc", "--scale-rate", "-1"]).contains("above 0"));
    bench.file("one.spc", "0,0,512,R,1\n");
    assert!(bench.refused(&["trace", "synth", "one.spc"]).contains("fewer than two requests"));
    assert!(!bench.path("x.txt").exists());
}

/// Calls the program with a trace as standard input.
fn piped(bench: &Bench, file: &str, arguments: &[&str]) -> Output {
    let input = fs::File::open(bench.path(file)).unwrap();
    bench.command(arguments).stdin(input).output().unwrap()
}

#[test]
fn a_trace_may_come_from_standard_input() {
    let bench = bench();
    let value = |output: Output| -> Value {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // A trace of two devices side by side is read twice, and here by two workloads.
    let run = |trace: &str| ["run", "tiny", trace, "--json"].map(str::to_owned);
    let run = |trace: &str| value(piped(&bench, "a.spc", &run(trace).each_ref().map(String::as_str)));
    let (file, input) = (run("a.spc"), run("-"));
    assert_eq!(file["requests"], input["requests"]);
    assert_eq!(file["workload"]["digest"], input["workload"]["digest"]);
    assert_eq!(input["workload"]["name"], "-");
    let twice = value(piped(&bench, "a.spc", &["run", "tiny", "-", "trace=- fit=wrap limit=10", "--json"]));
    assert_eq!(twice["requests"]["all"]["count"], 4010);
    assert_eq!(twice["streams"][1]["name"], "standard-input-2");
    let profile = value(piped(&bench, "a.spc", &["trace", "info", "-", "--json"]));
    assert_eq!((&profile["requests"], &profile["trace"]["file"]), (&4000.into(), &"standard input".into()));
    let converted = piped(&bench, "b.spc", &["trace", "convert", "-", "-", "--to", "fio", "--sort-window", "3"]);
    assert!(String::from_utf8(converted.stdout).unwrap().starts_with("fio version 3 iolog\n"));
    bench.file("bad.spc", "0,0,512,R,1\n0,0,512,?,2\n");
    let bad = piped(&bench, "bad.spc", &["run", "tiny", "-"]);
    assert_eq!(bad.status.code(), Some(2));
    let error = String::from_utf8(bad.stderr).unwrap();
    assert!(error.starts_with("error: standard input: line 2"), "{error}");
}

#[test]
fn gaps_from_clock_changes_are_reported_and_can_be_shortened() {
    let bench = bench();
    let time = |n: u64| if n < 20 { n } else { n + 365 * 86_400 };
    let text: String = (0..40).map(|n| format!("0,{},512,R,{}\n", n * 8, time(n))).collect();
    bench.file("two.spc", &text);
    let info = bench.good(&["trace", "info", "two.spc"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(info.contains("a gap of 365.0 days before line 21") && !info.contains("--time-unit"), "{info}");
    assert!(bench.refused(&["run", "tiny", "two.spc"]).contains("before line 21"));
    assert!(bench.refused(&["trace", "info", "two.spc", "--max-gap", "1s"]).contains("--max-gap is for replaying"));
    assert!(bench.refused(&["run", "tiny", "two.spc", "--max-gap", "0s"]).contains("--replay asap"));
    let run = ["run", "tiny", "two.spc", "--max-gap", "2s", "--json"];
    let summary: Value = serde_json::from_str(&bench.good(&run)).unwrap();
    assert_eq!(summary["measured_s"].as_f64().unwrap().round(), 40.0);
    assert!(summary["warnings"][0].as_str().unwrap().contains("1 gap between requests shortened by --max-gap"));
    let arguments = summary["arguments"].as_array().unwrap();
    assert!(arguments.iter().any(|argument| argument == "--max-gap"), "{arguments:?}");
    bench.good(&["trace", "convert", "two.spc", "short.spc", "--to", "spc", "--max-gap", "2s"]);
    assert_eq!(fs::read_to_string(bench.path("short.spc")).unwrap().lines().last(), Some("0,312,512,R,40"));
}

#[test]
fn a_fitted_workload_runs() {
    let bench = bench();
    let text = bench.good(&["trace", "synth", "a.spc", "-o", "like.json"]);
    assert!(text.contains("read share") && text.contains("deviation") && text.contains("like.json"), "{text}");
    let run = |workload: &str| -> Value {
        serde_json::from_str(&bench.good(&["run", "tiny", "--precondition", "none", "--json", workload])).unwrap()
    };
    let summary = run("like.json");
    assert_eq!(summary["requests"]["all"]["count"], 4000);
    assert_eq!(summary["streams"][0]["name"], "like");
    let again = run("like.json");
    assert_eq!(summary["requests"], again["requests"]);
    // Half of the requests at twice the rate take a quarter of the time.
    bench.good(&["trace", "synth", "a.spc", "-o", "fast.json", "--scale-rate", "2", "--requests", "2000"]);
    let fast = run("fast.json");
    let ratio = summary["measured_s"].as_f64().unwrap() / fast["measured_s"].as_f64().unwrap();
    assert!((ratio - 4.0).abs() < 0.3, "{ratio}");
    // The printed job can be run, and has the options of the file.
    let text = bench.good(&["trace", "synth", "a.spc", "-o", "like.fio"]);
    let words = text.lines().find_map(|line| line.strip_prefix("as a job       '")).unwrap().trim_end_matches('\'');
    assert_eq!(run(words)["requests"]["all"]["count"], 4000);
    let file = fs::read_to_string(bench.path("like.fio")).unwrap();
    assert!(
        file.contains("[like]\nioengine=libaio\nrw=randrw\n") && words.split(' ').all(|word| file.contains(word)),
        "{file}"
    );
    let moments: Value = serde_json::from_str(&bench.good(&["trace", "synth", "a.spc", "--json"])).unwrap();
    assert!(moments.as_array().unwrap().iter().any(|moment| moment["name"] == "gap mean ms"));
}

#[test]
fn known_workloads_are_made_from_their_moments() {
    let bench = bench();
    let moments = "radius footprint=1GiB requests=5000";
    let text = bench.good(&["trace", "synth", "--moments", moments, "-o", "radius.json"]);
    assert!(text.contains("wanted") && text.contains("radius.json"), "{text}");
    let model: Value = serde_json::from_str(&fs::read_to_string(bench.path("radius.json")).unwrap()).unwrap();
    assert_eq!(model["requests"], 5000);
    // The mean size of 124.25 KiB is 248.5 sectors.
    assert_eq!(model["operations"][0]["sizes"], serde_json::json!([[248, 500_000], [249, 500_000]]));
    fs::write(bench.path("broken.json"), "{}").unwrap();
    assert!(bench.refused(&["run", "tiny", "broken.json"]).contains("broken.json: not a model"));
}
