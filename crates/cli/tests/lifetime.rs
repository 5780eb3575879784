//! Tests of `floatgate run --until` with the real program.

use std::fs;

use crate::common::Bench;
use serde_json::Value;

const JOB: &str = "rw=randwrite bs=4k number_ios=2000";
const WORN: [&str; 5] = [JOB, "--set", "faults.erase_rate=0", "--set", "nand.endurance=20"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&WORN, more].concat()
}

#[test]
fn a_device_is_worn_out() {
    let bench = Bench::with_device();
    let lifetimes = bench.json(&with(&["--until", "worn-out"]));
    let life = &lifetimes["runs"][0];
    assert_eq!((&lifetimes["schema"], &life["until"]), (&"floatgate-lifetime-1".into(), &"worn-out".into()));
    assert_eq!((&life["complete"], &life["seed"]), (&true.into(), &1.into()));
    assert!(life["repetitions"].as_u64() > Some(2) && life["expiry"]["retired"].as_u64() > Some(0));
    let first = life["expiry"]["first_after_bytes"].as_u64().unwrap();
    assert!(first > 0 && first < life["written"]["bytes"].as_u64().unwrap());
    let classes = ["below_40_percent", "below_80_percent", "below_mean", "from_mean"];
    let blocks: u64 = classes.iter().map(|class| life["remaining_life"][*class].as_u64().unwrap()).sum();
    let histogram = life["wear"]["histogram"]["blocks"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
    assert_eq!(blocks, histogram.sum::<u64>());
    let page = bench.good(&with(&["--until", "worn-out"]));
    for part in ["written", "drive writes", "remaining life", "expired", "retired", "million page programs per second"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The command in the result repeats it.
    let again: Vec<&str> =
        lifetimes["arguments"].as_array().unwrap().iter().skip(2).map(|a| a.as_str().unwrap()).collect();
    let again = bench.json(&again);
    assert_eq!(again["runs"][0]["written"], life["written"]);
}

/// The digest of a trace is that of a run, which serves the same requests once. A device that is worn out before the
/// event has a result that says so.
#[test]
fn a_trace_has_its_digest_and_a_worn_device_its_end() {
    let bench = Bench::with_device();
    let lines = (0..600u64).map(|index| format!("0,{},4096,w,{}\n", index % 100 * 8, index as f64 / 1e3));
    let trace = bench.file("t.spc", &lines.collect::<String>());
    let worn = [trace.as_str(), WORN[1], WORN[2], WORN[3], WORN[4]];
    let run = bench.json(&worn);
    let life = &bench.json(&[&worn[..], &["--until", "drive-writes=1000"]].concat())["runs"][0];
    assert_eq!(life["workload"], run["workload"]);
    assert_eq!((&life["complete"], &life["worn_out"]), (&false.into(), &true.into()));
    let page = bench.good(&[&worn[..], &["--until", "drive-writes=1000"]].concat());
    assert!(page.contains("NOT REACHED: the device was worn out before that"), "{page}");
}

#[test]
fn seeds_give_a_confidence_interval() {
    let bench = Bench::with_device();
    let page = bench.good(&with(&["--until", "first-expiry", "--seeds", "3", "--out", "D"]));
    assert!(page.contains("95 % confidence, 3 seeds"), "{page}");
    let lifetimes: Value = serde_json::from_str(&fs::read_to_string(bench.path("D/lifetime.json")).unwrap()).unwrap();
    let written: Vec<f64> =
        lifetimes["runs"].as_array().unwrap().iter().map(|run| run["written"]["bytes"].as_f64().unwrap()).collect();
    let mean = written.iter().sum::<f64>() / 3.0;
    assert_eq!(lifetimes["written_bytes"]["n"], 3);
    assert!((lifetimes["written_bytes"]["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
    assert!(lifetimes["written_bytes"]["half_width"].as_f64() > Some(0.0));
}

#[test]
fn a_scaled_endurance_shortens_a_lifetime() {
    let bench = Bench::with_device();
    let written = |more: &[&str]| {
        let life = bench.json(&with(&[&["--until", "worn-out"], more].concat()));
        life["runs"][0]["written"]["bytes"].as_f64().unwrap()
    };
    let share = written(&["--endurance-scale", "0.5"]) / written(&[]);
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn options_without_an_effect_are_refused() {
    let bench = Bench::with_device();
    let cases: [(&[&str], &str); 6] = [
        (&[JOB, "--until", "worn-out"], "needs a device with a table [faults]"),
        (&[JOB, "--until", "tomorrow"], "expected worn-out, first-expiry, erases=N or drive-writes=N"),
        (&[JOB, "--until", "erases=5", "--requests", "csv", "--out", "D"], "--requests has no effect with --until"),
        (&[JOB, "--until", "erases=5", "--save-state", "S"], "--save-state has no effect with --until"),
        (&[JOB, "--until", "erases=5", "--endurance-scale", "0"], "expected a number above 0"),
        (&["rw=randread bs=4k number_ios=10", "--until", "erases=5"], "the workload writes nothing"),
    ];
    for (arguments, expected) in cases {
        let error = bench.error(2, arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
