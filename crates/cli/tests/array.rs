//! Tests with the real program: runs of arrays, their results, and refusals.

use std::fs;

use crate::common::Bench;
use floatgate_report::timeline::read_timeline;
use serde_json::Value;

const RAID5: &str = "[array]\nlevel = 5\ndevice = \"tiny\"\ncount = 4\nstripe = \"16KiB\"\n";

/// Returns a directory with the file of an array.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("raid5.toml", RAID5);
    bench
}

fn summary(bench: &Bench, path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(bench.path(path)).unwrap()).unwrap()
}

#[test]
fn a_run_writes_results_of_the_array_and_its_members() {
    let bench = bench();
    let job = "rw=randrw bs=4k iodepth=8 number_ios=2000";
    let text = bench.good(&["run", "raid5.toml", job, "--out", "out", "--requests", "csv", "--series", "--details"]);
    for line in ["array          level 5, optimal", "stripe writes", "member 3"] {
        assert!(text.contains(line), "{text}");
    }
    let all = summary(&bench, "out/summary.json");
    assert_eq!(all["requests"]["all"]["count"], 2000);
    assert_eq!(all["members"].as_array().unwrap().len(), 4);
    for number in 0..4 {
        let member = summary(&bench, &format!("out/member-{number}/summary.json"));
        assert_eq!(member["requests"], all["members"][number]["requests"]);
        assert!(bench.path(&format!("out/member-{number}/report.html")).exists());
    }
    // The members' flash operations add up to those of the array.
    let pages = |summary: &Value| summary["flash"]["pages"]["programmed"].as_u64().unwrap();
    assert_eq!(all["members"].as_array().unwrap().iter().map(pages).sum::<u64>(), pages(&all));
    // Bytes written by the array times those within the members.
    let number = |value: &Value| value.as_f64().unwrap();
    let host = number(&all["requests"]["write"]["bytes"]);
    let page = 4096.0 * pages(&all) as f64;
    assert!((number(&all["write_amplification_bytes"]) - page / host).abs() < 1e-9);
    bench.good(&["report", "out"]);
    bench.good(&["run", "raid5.toml", job, "--set", "array.level=6", "--out", "other"]);
    bench.good(&["compare", "out", "other"]);
}

#[test]
fn a_degraded_array_is_rebuilt() {
    let bench = bench();
    let set = ["--set", "array.failed=[1]", "--set", "array.rebuild={ rate = \"50MB/s\" }"];
    let job = "rw=randread bs=4k iodepth=4 number_ios=500";
    let text = bench.good(&[&["run", "raid5.toml", job][..], &set].concat());
    assert!(text.contains("rebuild        3,276 of 3,276 stripes, complete at"), "{text}");
}

#[test]
fn seeds_and_runs_are_reproducible() {
    let bench = bench();
    let job = "rw=randwrite bs=8k iodepth=4 number_ios=500";
    bench.good(&["run", "raid5.toml", job, "--seeds", "2", "--out", "seeds"]);
    let json = |path: &str| {
        let mut summary = summary(&bench, path);
        summary["run"] = Value::Null;
        summary["arguments"] = Value::Null;
        summary["members"].as_array_mut().unwrap().iter_mut().for_each(|member| member["arguments"] = Value::Null);
        summary
    };
    bench.good(&["run", "raid5.toml", job, "--seed", "2", "--out", "again"]);
    assert_eq!(json("seeds/seed-2/summary.json"), json("again/summary.json"));
    assert_ne!(json("seeds/seed-1/summary.json")["requests"], json("again/summary.json")["requests"]);
}

#[test]
fn an_array_is_shown_and_checked() {
    let bench = bench();
    assert!(bench.good(&["device", "check", "raid5.toml"]).contains("raid5 is a valid array"));
    assert!(bench.good(&["device", "show", "raid5.toml"]).contains("RAID 5 of 4 SSDs (tiny)"));
    let shown = bench.good(&["device", "show", "raid5.toml", "--toml", "--set", "array.stripe=8KiB"]);
    bench.file("again.toml", &shown);
    let digest =
        |arguments: &[&str]| bench.good(arguments).lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let changed = digest(&["device", "check", "raid5.toml", "--set", "array.stripe=8KiB"]);
    assert_eq!(digest(&["device", "check", "again.toml"]), changed);
}

/// The timeline has the channels and planes of all members, and each member's pages.
#[test]
fn a_timeline_has_the_flash_of_all_members() {
    let bench = bench();
    let job = "rw=randwrite bs=4k iodepth=8 number_ios=200 norandommap=1";
    bench.good(&["run", "raid5.toml", job, "--out", "out", "--timeline"]);
    let mut events = Vec::new();
    read_timeline(&bench.path("out/timeline.pftrace.gz"), &mut |event| {
        events.push(event.clone());
        Ok(())
    })
    .unwrap();
    let names = events.iter().filter(|event| event["name"] == "process_name");
    let channels = names.filter(|event| event["args"]["name"].as_str().unwrap().starts_with("channel")).count();
    let result = summary(&bench, "out/summary.json");
    let channels_of_a_member = result["members"][0]["config"]["geometry"]["channels"].as_u64().unwrap();
    assert_eq!(channels as u64, 4 * channels_of_a_member);
    for number in 0..4 {
        let first = number * channels_of_a_member;
        let processes = first + 1..=first + channels_of_a_member;
        let programs = events
            .iter()
            .filter(|event| event["cat"] == "host write" && processes.contains(&event["pid"].as_u64().unwrap()));
        assert!(programs.count() > 0, "member {number}");
    }
}

#[test]
fn a_saved_state_gives_the_results_of_the_original_state() {
    let bench = bench();
    let job = "rw=randrw bs=4k iodepth=8 number_ios=500";
    let run = |options: &[&str]| bench.good(&[&["run", "raid5.toml", job], options].concat());
    run(&["--precondition", "steady", "--save-state", "aged", "--out", "made"]);
    run(&["--load-state", "aged", "--out", "loaded"]);
    let numbers = |path: &str| {
        let summary = summary(&bench, path);
        [&summary["requests"], &summary["flash"], &summary["array"]].map(Value::clone)
    };
    assert_eq!(numbers("loaded/summary.json"), numbers("made/summary.json"));
    let text = bench.good(&["state", "info", "aged"]);
    for part in ["raid5, level 5 of 4 SSDs", "member 3", "gc.victim = \"greedy\"", "steady: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value = serde_json::from_str(&bench.good(&["state", "info", "aged", "--json"])).unwrap();
    assert_eq!((&json["options"]["level"], &json["members"][3]["device"]), (&5.into(), &"tiny".into()));
    let refused = |device: &str, state: &str, set: &str| {
        bench.refused(&["run", device, job, "--load-state", state, "--set", set])
    };
    let said = refused("raid5.toml", "aged", "array.level=6");
    assert!(said.contains("aged: it is the state of another device: `array.level` was 5"), "{said}");
    let said = refused("tiny", "aged", "nand.read=5us");
    assert!(said.contains("it is the state of an array"), "{said}");
    bench.good(&["run", "tiny", job, "--save-state", "single"]);
    let said = refused("raid5.toml", "single", "array.xor=1GB/s");
    assert!(said.contains("it is the state of a single SSD"), "{said}");
}

/// A workload that is a precondition writes data and parity. Prewriting does so for the data that are read first.
#[test]
fn workloads_prepare_an_array() {
    let bench = bench();
    let mapped = |options: &[&str]| {
        bench.good(&[&["run", "raid5.toml", "rw=randread bs=16k size=1m", "--out", "out"], options].concat());
        let summary = summary(&bench, "out/summary.json");
        fs::remove_dir_all(bench.path("out")).unwrap();
        let state = &summary["precondition"];
        (state["requested"].as_str().unwrap().to_owned(), state["mapped"].as_f64().unwrap())
    };
    // 12 MiB of data have 4 MiB of parity, of 4 * 51.2 MiB.
    let job = "rw=write bs=192k size=12m";
    let share = 16.0 / (4.0 * 51.1875);
    let (requested, reached) = mapped(&["--precondition", job]);
    assert!(requested == job && (reached - share).abs() < 1e-3, "{requested} {reached}");
    // 1 MiB of data is 64 chunks in 22 stripes, which have 22 chunks of parity.
    let (requested, reached) = mapped(&["--precondition", "none", "--prewrite", "allocation"]);
    assert!(requested.ends_with("1.34 MiB of read data prewritten by allocation"), "{requested}");
    assert!((reached - 86.0 / 64.0 / (4.0 * 51.1875)).abs() < 1e-3, "{reached}");
}

#[test]
fn what_needs_a_single_ssd_is_refused() {
    let bench = bench();
    let refused = |arguments: &[&str], words: &str| {
        let error = bench.refused(arguments);
        assert!(error.contains(words), "{error}");
    };
    let run = |option: &[&'static str]| [&["run", "raid5.toml", "rw=read number_ios=9"][..], option].concat();
    bench.file("image", "");
    #[cfg(feature = "live")]
    refused(&["serve", "raid5.toml", "--image", "image"], "an array has an image for each member, in a folder");
    bench.file("mixed.toml", "[array]\nlevel = 1\nmembers = [\"tiny\", \"hu2011\"]\n");
    refused(
        &["run", "mixed.toml", "rw=read number_ios=9", "--timeline", "--out", "t"],
        "--timeline is not supported for an array; its members have different geometries",
    );
    refused(&run(&["--set", "gc.victim=fifo"]), "write member.gc.victim=fifo");
}
