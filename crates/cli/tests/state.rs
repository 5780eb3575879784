//! Tests of `--save-state`, `--load-state` and `floatgate state` with the real program.

use std::fs;

use crate::common::{Bench, partial_of};
use serde_json::Value;

const JOB: &str = "rw=randrw bs=4k iodepth=8 number_ios=2000";

/// Returns a result without its command line and the cost of the run.
fn numbers(mut summary: Value) -> String {
    let keys = summary.as_object_mut().unwrap();
    for key in ["arguments", "run"] {
        keys.shift_remove(key).unwrap();
    }
    summary.to_string()
}

#[test]
fn a_loaded_state_gives_the_results_of_the_original_state() {
    let bench = Bench::with_device();
    let made = bench.json(&[JOB, "--precondition", "steady", "--save-state", "aged.fgstate"]);
    assert!(!made["arguments"].to_string().contains("aged"), "the path of the saved state does not affect the result");
    let loaded = bench.json(&[JOB, "--load-state", "aged.fgstate"]);
    assert!(loaded["arguments"].to_string().contains("\"--load-state\",\"aged.fgstate\""));
    assert_eq!(numbers(loaded), numbers(made));
    let fast = ["--set", "nand.read=5us", "--set", "host.queue_depth=4"];
    let made = bench.json(&[&[JOB, "--precondition", "steady"], &fast[..]].concat());
    let loaded = bench.json(&[&[JOB, "--load-state", "aged.fgstate"], &fast[..]].concat());
    assert_eq!(numbers(loaded), numbers(made), "times must not affect states");
    let names: Vec<_> = fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "the partial file is left: {names:?}");
}

#[test]
fn states_that_cannot_be_loaded_or_saved_are_errors() {
    let bench = Bench::with_device();
    bench.good(&[JOB, "--save-state", "full.fgstate"]);
    let refused = |arguments: &[&str]| bench.refused(&[&[JOB], arguments].concat());
    let said = refused(&["--load-state", "full.fgstate", "--set", "gc.victim=fifo", "--set", "geometry.chips=1"]);
    assert!(said.starts_with("error: full.fgstate: it is the state of another device: "), "{said}");
    assert!(said.contains("`gc.victim` was greedy when it was saved, and is fifo here"), "{said}");
    assert!(said.contains("`geometry.chips` was 2 when it was saved, and is 1 here"), "{said}");
    let said = refused(&["--load-state", "device.toml"]);
    assert_eq!(said, "error: device.toml: not a saved state: it does not start with FGSTATE\n");
    assert!(refused(&["--load-state", "none"]).starts_with("error: none: cannot read the state: "));
    assert!(refused(&["--load-state", "."]).contains("it is a directory"));
    let bytes = fs::read(bench.path("full.fgstate")).unwrap();
    fs::write(bench.path("half"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(&["--load-state", "half"]).contains("it is damaged: it ends in the middle of `"));
    refused(&["--load-state", "full.fgstate", "--precondition", "steady"]);
    refused(&["--load-state", "full.fgstate", "--save-state", "other"]);
    let said = bench.error(1, &[JOB, "--save-state", "none/file"]);
    assert!(said.starts_with("error: cannot write none/file: "), "{said}");
}

#[test]
fn info_describes_a_saved_state() {
    let bench = Bench::with_device();
    bench.good(&[JOB, "--save-state", "full.fgstate", "--seed", "7"]);
    let info = Bench::calling(&["state", "info"], &[]);
    fs::copy(bench.path("full.fgstate"), info.path("full.fgstate")).unwrap();
    let text = info.good(&["full.fgstate"]);
    for part in
        ["test-drive of ", "fill: 1.0 drive writes", "with seed 7", "geometry.channels = 2", "gc.victim = \"greedy\""]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("nand.read"), "times must not affect states: {text}");
    let json = info.json(&["full.fgstate"]);
    assert_eq!(json["precondition"]["requested"], "fill");
    assert_eq!(json["options"]["policy"]["allocation"], "static");
    // The map has four bytes for each logical unit. A quarter of the 64 MiB of flash is spare.
    assert_eq!(json["sections"][2]["name"], "media/map");
    assert_eq!(json["sections"][2]["bytes"], 4 * 8 * 32 * 64 * 3 / 4);
    assert_eq!(json["bytes"], fs::metadata(info.path("full.fgstate")).unwrap().len());
    let mut bytes = fs::read(info.path("full.fgstate")).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle] ^= 4;
    fs::write(info.path("bad"), bytes).unwrap();
    assert!(info.refused(&["bad"]).starts_with("error: bad: it is damaged: "));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let bench = Bench::with_device();
    // A limit for the size of files makes writes fail like a full disk.
    let output = bench.shell("ulimit -f 8; exec \"$@\"", &[JOB, "--save-state", "aged"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("File too large"), "{said}");
    assert!(!bench.path("aged").exists() && partial_of(&bench.path("aged")).is_none());
}
