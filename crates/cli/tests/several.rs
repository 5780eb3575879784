//! Tests of several concurrent workloads with the real program.

use std::fs;

use crate::common::Bench;
use serde_json::Value;

const DEVICE: &str = r#"
name = "test-drive"
[geometry]
channels = 4
chips = 1
dies = 1
planes = 1
blocks = 64
pages = 64
page_size = "4KiB"
[capacity]
spare = 0.25
[nand]
read = "25us"
program = "200us"
erase = "1500us"
[bus]
protocol = { nv-ddr = "200MT/s" }
"#;

/// Trace of reads, one every 10 ms, so that no request waits.
const CALM: &str = "0,0,4096,R,1.00\n0,8,4096,R,1.01\n0,16,4096,R,1.02\n";
/// Trace of reads on another device, with a later start. A replay starts both traces at their first request.
const OTHER: &str = "7,0,8192,R,50.000\n7,4096,8192,R,50.005\n7,8,8192,R,50.015\n7,16,8192,R,50.025\n";

/// Creates a directory with the device and the traces.
fn bench() -> Bench {
    Bench::calling(&["run", "device.toml"], &[("device.toml", DEVICE), ("calm.spc", CALM), ("other.spc", OTHER)])
}

/// Returns the names of the streams.
fn names(summary: &Value) -> Vec<&str> {
    summary["streams"].as_array().unwrap().iter().map(|stream| stream["name"].as_str().unwrap()).collect()
}

#[test]
fn two_traces_are_merged_by_time_with_their_offsets() {
    let bench = bench();
    let other = "trace=other.spc offset=8MiB start=0.005 time_scale=2 devices=merge name=late";
    let summary = bench.json(&["calm.spc", other, "--out", "out", "--requests", "csv"]);
    assert_eq!(names(&summary), ["calm", "late"]);
    assert_eq!(summary["workload"]["name"], format!("calm.spc + {other}"));
    let log = fs::read_to_string(bench.path("out/requests.csv")).unwrap();
    let head: Vec<&str> = log.lines().next().unwrap().split(',').collect();
    let wanted = ["stream", "operation", "lba", "sectors", "arrival_ns"];
    let wanted = wanted.map(|name| head.iter().position(|column| *column == name).unwrap());
    let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let found: Vec<String> =
        log.lines().skip(1).map(fields).map(|of| wanted.map(|column| of[column].clone()).join(" ")).collect();
    // 8 MiB are 16384 sectors. The gaps of the second trace, 5, 10 and 10 ms, are doubled, and it starts at 5 ms.
    assert_eq!(
        found,
        [
            "calm read 0 8 0.000",
            "late read 16384 16 5000000.000",
            "calm read 8 8 10000000.000",
            "late read 20480 16 15000000.000",
            "calm read 16 8 20000000.000",
            "late read 16392 16 35000000.000",
            "late read 16400 16 55000000.000",
        ]
    );
}

#[test]
fn streams_that_do_not_interfere_have_the_results_of_single_runs() {
    let bench = bench();
    // The requests are at least three milliseconds apart, and each takes less than one.
    let other = "trace=other.spc offset=8MiB start=3ms devices=merge";
    let both = bench.json(&["calm.spc", other]);
    assert_eq!(names(&both), ["calm", "other"]);
    let digests: Vec<String> = ["calm.spc", other]
        .iter()
        .zip(both["streams"].as_array().unwrap())
        .map(|(workload, stream)| {
            let alone = bench.json(&[workload]);
            assert_eq!(alone["requests"]["all"]["latency_us"], stream["requests"]["all"]["latency_us"], "{workload}");
            assert_eq!(alone["requests"]["all"]["count"], stream["requests"]["all"]["count"]);
            alone["workload"]["digest"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(both["workload"]["digest"], digests.join("-"));
}

#[test]
fn jobs_and_traces_run_together_and_names_are_unique() {
    let bench = bench();
    let job = "rw=randwrite bs=4k number_ios=50 offset=16m name=job";
    let summary = bench.json(&["calm.spc", "calm.spc", job]);
    assert_eq!(names(&summary), ["calm", "calm-2", "job"]);
    assert_eq!(summary["requests"]["all"]["count"], 3 + 3 + 50);
    // A single trace can have options of its own, too.
    assert_eq!(names(&bench.json(&["trace=calm.spc name=db limit=2"])), ["db"]);
    let global = bench.json(&["trace=calm.spc limit=2", "other.spc", "--limit", "1"]);
    assert_eq!(global["requests"]["all"]["count"], 2 + 1);
    let text = bench.refused(&["rw=read size=1m name=job1", "rw=write size=1m name=job1"]);
    assert!(text.contains("`job1`") && text.contains("name="), "{text}");
    let text = bench.refused(&["trace=calm.spc name=a", "trace=other.spc name=a"]);
    assert!(text.contains("`a`"), "{text}");
}

#[test]
fn errors_say_what_to_do() {
    let bench = bench();
    let text = bench.refused(&["trace=calm.spc offset=1TiB"]);
    assert!(text.contains("leaves nothing of the device"), "{text}");
    let text = bench.refused(&["trace=calm.spc ofset=1"]);
    assert!(text.contains("did you mean `offset`"), "{text}");
    let text = bench.refused(&["trace=none.spc"]);
    assert!(text.contains("none.spc: cannot open the trace"), "{text}");
    let text = bench.refused(&["trace=other.spc devices=merge offset=8MiB size=1MiB"]);
    assert!(text.contains("given 1 MiB of the device, from 8 MiB on") && text.contains("--fit wrap"), "{text}");
    let text = bench.refused(&["rw=read", "bs=4k"]);
    assert!(text.contains("one pair of quotes"), "{text}");
}

#[test]
fn a_trace_with_options_can_precondition() {
    let bench = bench();
    let summary = bench.json(&["calm.spc", "--precondition", "trace=calm.spc offset=1MiB"]);
    assert_eq!(summary["precondition"]["requested"], "trace=calm.spc offset=1MiB");
}

#[test]
fn jobs_without_names_are_numbered_over_all_workloads() {
    let bench = bench();
    let job = "rw=randread number_ios=5";
    let summary = bench.json(&[job, &format!("{job}; {job} name=mine"), job, "calm.spc"]);
    assert_eq!(names(&summary), ["job1", "job2", "mine", "job4", "calm"]);
    assert!(bench.refused(&["rw=read number_ios=1 name=job2", job]).contains("has a stream of the name `job2`"));
}
