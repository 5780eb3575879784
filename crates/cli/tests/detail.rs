//! Tests of the detail files of `floatgate run`, and of `floatgate explain`, with the real program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::Bench;
use floatgate_core::results::Part;
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use floatgate_report::columns::requests::read_requests;
use floatgate_report::columns::series::{Row, read_merged, read_series};
use floatgate_report::number::grouped;
use floatgate_report::timeline::read_timeline;
use serde_json::Value;
use tempfile::TempDir;

/// Jobs whose reads and writes wait for each other, and whose larger writes share program commands.
const MIX: &str =
    "rw=randrw bs=4k iodepth=16 number_ios=4000 name=a,b; rw=write name=c bs=32k rate_iops=900 number_ios=300";

fn floatgate(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_floatgate")).args(arguments).current_dir(directory).output().unwrap()
}

/// Runs `tiny` with these options, and returns the directory of the result.
fn run(arguments: &[&str]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let all = [&["run", "tiny", MIX, "--out", "result"], arguments].concat();
    let output = floatgate(directory.path(), &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = directory.path().join("result");
    (directory, result)
}

fn summary(result: &Path) -> Value {
    serde_json::from_slice(&fs::read(result.join("summary.json")).unwrap()).unwrap()
}

fn names(result: &Path) -> Vec<String> {
    let entries = fs::read_dir(result).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// Reads all requests of a file, as text.
fn records(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    read_requests(path, &mut |record| {
        all.push(format!("{record:?}"));
        Ok(())
    })
    .unwrap();
    all
}

#[test]
fn parquet_and_csv_hold_the_same() {
    let (_keep, parquet) = run(&["--requests", "parquet"]);
    let (_keep, csv) = run(&["--requests", "csv"]);
    assert_eq!(names(&parquet), ["digests.json", "report.html", "requests.parquet", "series.parquet", "summary.json"]);
    let all = records(&parquet.join("requests.parquet"));
    assert_eq!(all, records(&csv.join("requests.csv")));
    let summary = summary(&parquet);
    let reported = &summary["requests"]["all"];
    assert_eq!(reported["count"], all.len() as u64);
    let mut latency = 0u128;
    let mut bytes = 0;
    let mut numbers = Vec::new();
    read_requests(&parquet.join("requests.parquet"), &mut |record| {
        latency += u128::from(record.latency().ps());
        bytes += record.sectors * 512;
        numbers.push(record.number);
        assert!(record.arrival <= record.start && record.start <= record.finish);
        assert!(record.breakdown.is_none_or(|breakdown| breakdown.total() == record.latency()));
        Ok(())
    })
    .unwrap();
    assert_eq!(reported["bytes"], bytes);
    assert_eq!(reported["latency_us"]["mean"].as_f64().unwrap(), latency as f64 / all.len() as f64 / 1e6);
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..all.len() as u64), "each number occurs once");
}

#[test]
fn windows_add_up_to_the_summary() {
    for (option, widths) in [("--series", None), ("--series=5ms", Some(Time::from_us(5_000)))] {
        let (_keep, result) = run(&[option]);
        let summary = summary(&result);
        let rows = read_series(&result.join("series.parquet")).unwrap();
        // Without a length, there are windows for 200 requests each.
        let least = if widths.is_some() { 50 } else { 8 };
        assert!((least..=1024).contains(&rows.len()), "{}", rows.len());
        assert!(rows.windows(2).all(|pair| pair[0].end_ps == pair[1].start_ps));
        if let Some(width) = widths {
            assert!(rows[..rows.len() - 1].iter().all(|row| row.end_ps - row.start_ps == width.ps()));
        }
        let sum = |of: &dyn Fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
        let reported = |path: &str| summary.pointer(path).unwrap().as_u64().unwrap();
        assert_eq!(sum(&|row| row.operations[0].count), reported("/requests/read/count"));
        assert_eq!(sum(&|row| row.operations[1].bytes), reported("/requests/write/bytes"));
        assert_eq!(sum(&|row| row.statistics.counters.pages_programmed[0]), reported("/flash/programs_by_cause/host"));
        assert_eq!(sum(&|row| row.statistics.counters.pages_programmed[1]), reported("/flash/programs_by_cause/gc"));
        assert_eq!(sum(&|row| row.statistics.counters.pages_read[1]), reported("/flash/reads_by_cause/gc"));
        assert_eq!(sum(&|row| row.statistics.counters.blocks_erased), reported("/flash/blocks_erased"));
        assert_eq!(sum(&|row| row.statistics.counters.victims), reported("/gc/victims"));
        let programmed = sum(&|row| row.statistics.derived.units_programmed);
        let amplification = programmed as f64 / sum(&|row| row.statistics.counters.host_units) as f64;
        assert_eq!(amplification, summary["write_amplification"].as_f64().unwrap());
        // Little's law: the outstanding requests, integrated over time, are the sum of the latencies.
        let seconds = |row: &Row| (row.end_ps - row.start_ps) as f64 / 1e12;
        let outstanding: f64 = rows.iter().map(|row| row.outstanding.unwrap() * seconds(row)).sum();
        let latency = summary["requests"]["all"]["latency_us"]["mean"].as_f64().unwrap() / 1e6;
        let expected = latency * reported("/requests/all/count") as f64;
        assert!((outstanding / expected - 1.0).abs() < 1e-9, "{outstanding} and {expected}");
        let longest = |row: &Row| row.operations[1].max_us.unwrap_or(0.0);
        let max = rows.iter().map(longest).fold(0.0, f64::max);
        assert_eq!(max, summary["requests"]["write"]["latency_us"]["max"].as_f64().unwrap());
        for row in &rows {
            assert_eq!((row.channel_data.len(), row.die_cell.len()), (2, 4));
            let write = &row.operations[1];
            assert!(write.p50_us <= write.p99_us && write.p99_us <= write.max_us, "{write:?}");
            let shares = row.channel_data.iter().zip(&row.channel_command).map(|(data, command)| data + command);
            assert!(shares.into_iter().all(|share| (0.0..=1.0).contains(&share)));
        }
    }
}

/// Returns a time of an event in picoseconds.
fn ps(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e6).round() as u64
}

fn events(result: &Path) -> Vec<Value> {
    let mut events = Vec::new();
    read_timeline(&result.join("timeline.pftrace.gz"), &mut |event| {
        events.push(event.clone());
        Ok(())
    })
    .unwrap();
    events
}

#[test]
fn the_tracks_of_a_timeline_do_not_overlap() {
    let (_keep, result) = run(&["--timeline"]);
    let covered = read_timeline(&result.join("timeline.pftrace.gz"), &mut |_| Ok(())).unwrap();
    let (summary, events) = (summary(&result), events(&result));
    assert_eq!(summary["config_digest"], covered.config_digest);
    let named = |name: &str| events.iter().filter(|event| event["name"] == name && event["ph"] == "M").count();
    // Processes: the host and 2 channels. Threads: 2 buses, 8 planes, and one for each concurrent request.
    assert_eq!(named("process_name"), 3);
    assert!(named("thread_name") >= 10 + 17, "{}", named("thread_name"));
    let rows = read_series(&result.join("series.parquet")).unwrap();
    let end = rows.last().unwrap().end_ps;
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut seen = tracks.clone();
    let mut of_phase: BTreeMap<String, u64> = BTreeMap::new();
    let mut requests = 0;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (start, span) = (ps(&event["ts"]), ps(&event["dur"]));
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        tracks.entry(track).or_default().push((start, start + span));
        // In the file, times are whole nanoseconds.
        seen.entry(track).or_default().push((start / 1000, (start + span) / 1000));
        requests += u64::from(event["cat"] == "request");
        if let Some(phase) = event["args"]["phase"].as_str() {
            *of_phase.entry(phase.to_owned()).or_default() += (start + span).min(end).saturating_sub(start);
        }
    }
    assert_eq!(requests, summary["requests"]["all"]["count"].as_u64().unwrap());
    assert_apart(tracks);
    assert_apart(seen);
    // The phases up to the last completion add up to the busy times in the series.
    let total = |of: &dyn Fn(&Row) -> &Vec<f64>| -> f64 {
        rows.iter().map(|row| of(row).iter().sum::<f64>() * (row.end_ps - row.start_ps) as f64).sum()
    };
    let close = |a: u64, b: f64| assert!((a as f64 / b - 1.0).abs() < 1e-9, "{a} and {b}");
    close(of_phase["data"], total(&|row| &row.channel_data));
    close(of_phase["cell"], total(&|row| &row.die_cell));
}

/// Asserts that the slices of each track do not overlap.
fn assert_apart(tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>>) {
    for (track, mut slices) in tracks {
        slices.sort_unstable();
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "slices overlap on {track:?}");
    }
}

/// A program is scheduled as a whole before a read suspends it.
#[test]
fn suspended_operations_are_split_in_the_timeline() {
    let suspend = "nand.advanced.suspend={ program = true, erase = true, latency = \"5us\", resume = \"3us\" }";
    let set = ["--timeline", "--set", suspend, "--set", "nand.concurrency=die", "--set", "scheduler=read-first"];
    let (_keep, result) = run(&set);
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut programs: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in events(&result).iter().filter(|event| event["ph"] == "X" && event["cat"] != "request") {
        let (start, span) = (ps(&event["ts"]), ps(&event["dur"]));
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        tracks.entry(track).or_default().push((start, start + span));
        if event["args"]["phase"] == "cell" && event["cat"] == "host write" {
            programs.entry(event["args"]["op"].as_u64().unwrap()).or_default().push(span);
        }
    }
    assert_apart(tracks);
    assert!(programs.values().filter(|parts| parts.len() > 1).count() > 100, "too few suspended programs");
    let whole = programs.values().map(|parts| parts.iter().sum::<u64>()).max().unwrap();
    assert!(programs.values().all(|parts| parts.iter().sum::<u64>() == whole), "the parts do not add up to a program");
}

#[test]
fn the_controller_cores_have_tracks() {
    let firmware = "controller.firmware={ cores = 2, interrupt = 100, lookup = 200, allocation = 400, gc = 900 }";
    let (_keep, result) = run(&["--timeline", "--set", firmware]);
    let summary = summary(&result);
    let events = events(&result);
    let named: Vec<(u64, &str)> = events
        .iter()
        .filter(|event| event["ph"] == "M" && event["pid"] == 3 && event["name"] != "thread_sort_index")
        .filter_map(|event| Some((event["tid"].as_u64()?, event["args"]["name"].as_str()?)))
        .collect();
    assert_eq!(named, [(1, "controller"), (1, "core 0"), (2, "core 1")], "after the host and two channels");
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    // Number of work items by request and task. GC has no request.
    let mut tasks: BTreeMap<(Option<u64>, &str), u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["cat"] == "firmware") {
        let (start, span, args) = (ps(&event["ts"]), ps(&event["dur"]), &event["args"]);
        tracks.entry((3, event["tid"].as_u64().unwrap())).or_default().push((start, start + span));
        let name = event["name"].as_str().unwrap();
        *tasks.entry((args["request"].as_u64(), name)).or_default() += 1;
        let instructions = match name {
            "receive" | "complete" => 100,
            "look up" => 200 * args["units"].as_u64().unwrap(),
            "take a write" => 600 * args["units"].as_u64().unwrap(),
            "choose a block" => 900,
            _ => panic!("{event}"),
        };
        assert_eq!((event["pid"].as_u64(), span), (Some(3), instructions * 10_000), "{event}");
        assert_eq!(args["cause"], if name == "choose a block" { "gc" } else { "host" });
        assert_eq!(args["plane"].is_u64(), args["request"].is_null());
    }
    let requests = summary["requests"]["all"]["count"].as_u64().unwrap();
    for task in ["receive", "complete"] {
        assert!((0..requests).all(|request| tasks[&(Some(request), task)] == 1), "each request has one {task}");
    }
    assert!(tasks[&(None, "choose a block")] > 10);
    // The summary ends at the last completion, but garbage collection may continue after it.
    let measured = summary["measured_s"].as_f64().unwrap() * 1e12;
    for (track, share) in tracks.values().zip(summary["firmware"]["cores"].as_array().unwrap()) {
        let busy: u64 = track.iter().map(|(from, to)| (*to).min(measured as u64).saturating_sub(*from)).sum();
        let (share, reported) = (busy as f64 / measured, share.as_f64().unwrap());
        assert!((share / reported - 1.0).abs() < 1e-6, "{share} and {reported}");
    }
    assert_apart(tracks);
}

#[test]
fn arrows_lead_from_requests_to_their_operations() {
    let (_keep, result) = run(&["--timeline"]);
    let mut arrows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let events = events(&result);
    for event in &events {
        let place = if event["cat"] == "request" { "request" } else { event["args"]["phase"].as_str().unwrap_or("") };
        for flow in event["flows"].as_array().into_iter().flatten() {
            arrows.entry(flow.as_u64().unwrap()).or_default().push(match place {
                "command" | "data" | "switch" => "bus",
                place => place,
            });
        }
    }
    assert!(arrows.len() > 4_000);
    for (id, places) in &mut arrows {
        places.sort_unstable();
        assert_eq!(*places, ["bus", "cell", "request"], "arrow {id}");
    }
    let begun: Vec<&Value> = events.iter().filter(|event| event["ph"] == "b").map(|event| &event["id"]).collect();
    let ended: Vec<&Value> = events.iter().filter(|event| event["ph"] == "e").map(|event| &event["id"]).collect();
    assert_eq!(begun, ended, "each wait that starts must end");
}

#[test]
fn a_span_of_the_timeline_is_the_same_part_of_the_whole() {
    let (_keep, whole) = run(&["--timeline"]);
    let (_keep, part) = run(&["--timeline=100ms..120ms"]);
    let slices = |result: &Path| -> Vec<String> {
        let place = |event: &Value| format!("{} {} {}", event["pid"], event["tid"], event["dur"]);
        let here = |event: &&Value| {
            let within = |at: u64| (100_000_000_000..120_000_000_000).contains(&at);
            event["ph"] == "X" && event["cat"] != "request" && within(ps(&event["ts"]))
        };
        events(result).iter().filter(here).map(|event| format!("{} {}", place(event), event["ts"])).collect()
    };
    assert!(slices(&part).len() > 100);
    assert_eq!(slices(&part), slices(&whole));
    let all = events(&part);
    assert!(all.iter().filter(|e| e["args"]["phase"].is_string()).all(|e| ps(&e["ts"]) >= 100_000_000_000));
}

/// Returns how long other operations held the die and the channel that an operation waited for, in picoseconds. This is
/// computed from the timeline by stepping through its instants.
fn blocked(events: &[Value], wait: &Value, until: u64) -> (u64, u64) {
    let (lun, own) = (&wait["args"]["lun"], &wait["args"]["op"]);
    let from = ps(&wait["ts"]);
    let others = || events.iter().filter(|e| e["ph"] == "X" && e["args"]["op"].is_u64() && e["args"]["op"] != *own);
    let span = |event: &Value| (ps(&event["ts"]), ps(&event["ts"]) + ps(&event["dur"]));
    let mut held: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for event in others().filter(|event| event["args"]["lun"] == *lun) {
        let (start, end) = span(event);
        let entry = held.entry(event["args"]["op"].as_u64().unwrap()).or_insert((start, end));
        *entry = (entry.0.min(start), entry.1.max(end));
    }
    let bus: Vec<(u64, u64)> =
        others().filter(|event| event["pid"] == wait["pid"] && event["tid"] == 1).map(span).collect();
    let mut instants: Vec<u64> = held.values().chain(&bus).flat_map(|span| [span.0, span.1]).collect();
    instants.extend([from, until]);
    instants.retain(|at| (from..=until).contains(at));
    instants.sort_unstable();
    let (mut die, mut channel) = (0, 0);
    for pair in instants.windows(2) {
        let within = |span: &(u64, u64)| span.0 <= pair[0] && pair[1] <= span.1;
        if held.values().any(within) {
            die += pair[1] - pair[0];
        } else if bus.iter().any(within) {
            channel += pair[1] - pair[0];
        }
    }
    (die, channel)
}

#[test]
fn explain_agrees_with_the_timeline() {
    let (keep, result) = run(&["--requests", "parquet", "--timeline"]);
    let events = events(&result);
    for choice in ["read:p50", "read:p99", "read:max", "write:p90", "slowest:7", "1000"] {
        let output = floatgate(keep.path(), &["explain", "result", choice, "--json"]);
        assert!(output.status.success(), "{choice}: {}", String::from_utf8_lossy(&output.stderr));
        let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = &explanation["request"];
        let operations = explanation["operations"].as_array().unwrap();
        let waits = || events.iter().filter(|event| event["ph"] == "b" && event["args"]["request"] == *number);
        assert!(!operations.is_empty() || waits().count() == 0);
        for reported in operations {
            let of_op = |event: &&Value| event["args"]["op"] == reported["op"];
            let wait = waits().filter(of_op).min_by_key(|event| ps(&event["ts"])).unwrap();
            assert_eq!(ps(&reported["waited_from_us"]), ps(&wait["ts"]), "{choice}");
            let granted = ps(&reported["granted_us"]);
            assert_eq!(granted, ps(&wait["ts"]) + ps(&wait["args"]["wait_us"]), "{choice}");
            let (die, channel) = blocked(&events, wait, granted);
            let first = reported["waits"].as_array().unwrap().iter().find(|wait| wait["of"] == "die and channel");
            let sum = |which: &str| -> u64 {
                let behind = first.iter().flat_map(|wait| wait["behind"].as_array().unwrap());
                behind.map(|blocker| ps(&blocker[which])).sum()
            };
            assert_eq!((sum("die_us"), sum("channel_us")), (die, channel), "{choice}: {reported}");
            let rest = first.map_or(0, |wait| ps(&wait["unheld_us"]));
            assert_eq!(die + channel + rest, granted - ps(&wait["ts"]));
            let phases = events.iter().filter(|event| event["ph"] == "X").filter(of_op).count();
            assert_eq!(reported["phases"].as_array().unwrap().len(), phases);
        }
        let text = String::from_utf8(floatgate(keep.path(), &["explain", "result", choice]).stdout).unwrap();
        assert!(text.starts_with(&format!("request {number}: ")), "{text}");
    }
}

/// The parts of a latency are summed up during the run, and the blockers are found in the timeline. Both must agree.
#[test]
fn explain_names_the_blockers_that_the_parts_count() {
    let (keep, _) = run(&["--requests", "parquet", "--timeline"]);
    let mut behind_gc = 0;
    for rank in 1..=30 {
        let choice = format!("read:slowest:{}", rank * 14);
        let output = floatgate(keep.path(), &["explain", "result", &choice, "--json"]);
        let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
        let [operation] = &explanation["operations"].as_array().unwrap()[..] else { continue };
        let reported = |name: &str| part(&explanation, name);
        let (mut die, mut channel, mut gc) = (0, 0, 0);
        for blocker in operation["waits"].as_array().unwrap().iter().flat_map(|wait| wait["behind"].as_array().unwrap())
        {
            let what = blocker["what"].as_str().unwrap();
            let [of_die, of_channel] = ["die_us", "channel_us"].map(|which| ps(&blocker[which]));
            match what {
                "host read" | "host write" | "rmw read" => (die, channel) = (die + of_die, channel + of_channel),
                "GC read" | "GC write" | "erase" => gc += of_die + of_channel,
                other => panic!("{other} has no part"),
            }
        }
        assert_eq!(
            (reported("die"), reported("channel"), reported("gc")),
            (die, channel, gc),
            "{choice}: {explanation}"
        );
        behind_gc += u32::from(gc > 0);
    }
    assert!(behind_gc > 5, "{behind_gc} requests waited for garbage collection");
}

/// Partial writes of few units, so that requests wait for older writes, and reads for data that they do not have yet.
const HOT: &str = "rw=randrw bs=1k size=64k io_size=3m iodepth=16 norandommap=1";

/// Returns a part of the latency in an explanation, in picoseconds.
fn part(explanation: &Value, name: &str) -> u64 {
    ps(&explanation["parts"].as_array().unwrap().iter().find(|one| one["part"] == name).unwrap()["us"])
}

#[test]
fn explain_names_the_older_writes_that_a_request_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let link = ["--set", "host.link_bandwidth=200MB/s"];
    for options in [&[][..], &link] {
        let all = [&["run", "tiny", HOT, "--out", "result", "--requests=csv", "--timeline"], options].concat();
        let output = floatgate(directory.path(), &all);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        read_requests(&directory.path().join("result/requests.csv"), &mut |record| {
            if record.breakdown.is_some_and(|breakdown| breakdown.of(Part::Order) > Time::ZERO) {
                if record.operation == Operation::Read { &mut reads } else { &mut writes }.push(record.number);
            }
            Ok(())
        })
        .unwrap();
        assert!(reads.len() > 20 && writes.len() > 200, "{} reads, {} writes", reads.len(), writes.len());
        let mut longest = 0;
        for number in reads.iter().take(4).chain(writes.iter().step_by(writes.len() / 8)) {
            let (requested, number) = (*number, number.to_string());
            let output = floatgate(directory.path(), &["explain", "result", &number, "--json"]);
            let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
            let order = &explanation["order"];
            let behind = order["behind"].as_array().unwrap();
            let reported: u64 = behind.iter().map(|older| ps(&older["us"])).sum();
            assert_eq!((reported, ps(&order["unexplained_us"])), (part(&explanation, "order"), 0), "{explanation}");
            // The older writes are other requests, and the waits for them follow one another without gaps.
            assert!(behind.iter().all(|older| older["request"] != requested));
            let ends: Vec<u64> = behind.iter().map(|older| ps(&older["until_us"])).collect();
            let steps = ends.windows(2).zip(behind).all(|(ends, older)| ends[0] - ends[1] == ps(&older["us"]));
            assert!(steps && ends[0] <= ps(&explanation["finish_us"]), "{explanation}");
            if longest >= behind.len() {
                continue;
            }
            longest = behind.len();
            let text = String::from_utf8(floatgate(directory.path(), &["explain", "result", &number]).stdout).unwrap();
            assert!(text.contains(&format!("of request {}\n", behind[0]["request"])), "{text}");
        }
        assert!(longest > 2, "{longest}");
    }
}

#[test]
fn a_request_is_ranked_among_the_requests_that_it_is_chosen_from() {
    let (keep, result) = run(&["--requests", "csv"]);
    let summary = summary(&result);
    let explain = |choice: &str| {
        let explanation = floatgate(keep.path(), &["explain", "result", choice, "--json"]).stdout;
        let text = String::from_utf8(floatgate(keep.path(), &["explain", "result", choice]).stdout).unwrap();
        (serde_json::from_slice::<Value>(&explanation).unwrap(), text.lines().nth(1).unwrap().to_owned())
    };
    let count = |among: &str| summary["requests"][among]["count"].as_u64().unwrap();
    for (choice, among) in [("p99", "all"), ("slowest:5", "all"), ("read:p99", "read"), ("write:slowest:5", "write")] {
        let (explanation, said) = explain(choice);
        let standing = &explanation["standing"];
        assert_eq!((&standing["among"], &standing["of"]), (&among.into(), &count(among).into()), "{choice}");
        let slower = standing["slower"].as_u64().unwrap();
        assert!(if choice.contains("slowest") { slower == 4 } else { slower <= count(among) / 100 }, "{choice}");
        assert!(said.starts_with(&format!("it is {choice}; among ")) && said.contains("slower"), "{said}");
    }
    let (explanation, said) = explain("7");
    assert_eq!(explanation["standing"]["among"], explanation["operation"]);
    assert!(said.starts_with("among the "), "{said}");
}

#[test]
fn an_unknown_request_is_an_error_that_names_the_known_ones() {
    let (keep, result) = run(&["--requests", "parquet"]);
    let summary = summary(&result);
    let error = |choice: &str| {
        let output = floatgate(keep.path(), &["explain", "result", choice]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let count = |name: &str| grouped(summary["requests"][name]["count"].as_u64().unwrap());
    let counts = format!("requests.parquet has {} read and {} write requests", count("read"), count("write"));
    for choice in ["trim:max", "slowest:99999", "read:slowest:99999", "99999999"] {
        let said = error(choice);
        assert!(said.contains(choice) && said.contains(&counts), "{said}");
    }
    assert!(error("slowest:99999").contains("the fastest is slowest:4300"), "{}", error("slowest:99999"));
    assert!(error("99999999").contains("numbered from 0 to 4299"), "{}", error("99999999"));
}

/// A shell runs the command of the explanation unchanged.
#[test]
#[cfg(unix)]
fn explain_prints_the_command_that_records_missing_operations() {
    let (keep, result) = run(&["--requests", "parquet", "--timeline=..20ms"]);
    let explanation = |choice: &str| -> Value {
        serde_json::from_slice(&floatgate(keep.path(), &["explain", "result", choice, "--json"]).stdout).unwrap()
    };
    let before = explanation("max");
    let covers = |explanation: &Value| explanation["timeline"]["covers"].as_bool().unwrap();
    assert!(!covers(&before) && before["finish_us"].as_f64().unwrap() > 20_000.0, "{before}");
    let command = before["rerun"].as_str().unwrap();
    let text = String::from_utf8(floatgate(keep.path(), &["explain", "result", "max"]).stdout).unwrap();
    assert!(text.contains("ranges from 0.000") && text.contains(command), "{text}");
    let program = Path::new(env!("CARGO_BIN_EXE_floatgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).env("PATH", path).current_dir(keep.path()).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let after = explanation("max");
    assert!(covers(&after) && after["rerun"].is_null(), "{after}");
    assert_eq!((&after["request"], &after["parts"]), (&before["request"], &before["parts"]));
    assert!(!after["operations"].as_array().unwrap().is_empty());
    let all = events(&result);
    let first = all.iter().filter(|event| event["args"]["phase"].is_string()).map(|event| ps(&event["ts"])).min();
    assert!(
        first.unwrap() <= ps(&after["arrival_us"]),
        "the timeline misses operations that blocked the request at its arrival"
    );
}

#[test]
fn explain_marks_writes_that_any_die_may_take() {
    for (allocation, any) in [("static", false), ("dynamic", true)] {
        let set = format!("allocation={allocation}");
        let (keep, _) = run(&["--requests", "parquet", "--timeline", "--set", &set]);
        let explain = |arguments: &[&str]| floatgate(keep.path(), &[&["explain", "result"], arguments].concat()).stdout;
        let explanation: Value = serde_json::from_slice(&explain(&["write:max", "--json"])).unwrap();
        let operations = explanation["operations"].as_array().unwrap();
        assert!(
            !operations.is_empty() && operations.iter().all(|operation| operation["any_die"] == any),
            "{explanation}"
        );
        let text = String::from_utf8(explain(&["write:max"])).unwrap();
        assert_eq!(text.contains("Any die could have taken it"), any, "{text}");
    }
}

#[test]
fn explain_finds_requests_by_rank() {
    let (keep, result) = run(&["--requests", "csv"]);
    let mut writes = Vec::new();
    read_requests(&result.join("requests.csv"), &mut |record| {
        if record.operation.name() == "write" {
            writes.push((record.latency(), record.number));
        }
        Ok(())
    })
    .unwrap();
    writes.sort_unstable();
    let at = |rank: usize| writes.iter().find(|write| write.0 == writes[rank - 1].0).unwrap().1;
    let count = writes.len();
    let cases = [
        ("write:max", count),
        ("write:slowest:3", count - 2),
        ("write:p50", count.div_ceil(2)),
        ("write:p99.9", (count * 999).div_ceil(1000)),
    ];
    for (choice, rank) in cases {
        let output = floatgate(keep.path(), &["explain", "result", choice, "--json"]);
        let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(explanation["request"], at(rank), "{choice}");
        let standing = &explanation["standing"];
        assert_eq!(standing["of"], count);
        assert_eq!(standing["faster"], writes.iter().filter(|write| write.0 < writes[rank - 1].0).count());
        assert_eq!(explanation["operations"], Value::Null, "operations without a timeline");
    }
    let text = String::from_utf8(floatgate(keep.path(), &["explain", "result", "max"]).stdout).unwrap();
    assert!(text.contains("--timeline"), "{text}");
}

#[test]
fn a_timeline_of_another_device_is_refused() {
    let (keep, result) = run(&["--requests", "csv"]);
    let (_other, others) = run(&["--timeline", "--set", "gc.victim=fifo"]);
    fs::copy(others.join("timeline.pftrace.gz"), result.join("timeline.pftrace.gz")).unwrap();
    let refused = || {
        let output = floatgate(keep.path(), &["explain", "result", "max"]);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused();
    assert!(said.contains("timeline.pftrace.gz is not listed as a file of this result"), "{said}");
    fs::remove_file(result.join("digests.json")).unwrap();
    let said = refused();
    assert!(said.contains("timeline.pftrace.gz belongs to a run on another device"), "{said}");
}

#[test]
fn errors_about_missing_files_name_the_option_that_creates_them() {
    let (keep, result) = run(&[]);
    assert_eq!(names(&result), ["digests.json", "report.html", "series.parquet", "summary.json"]);
    let error = |arguments: &[&str]| {
        let output = floatgate(keep.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["explain", "result", "max"]).contains("--requests"));
    assert!(error(&["explain", "elsewhere", "max"]).contains("--out"));
    assert!(error(&["explain", "result", "p101"]).contains("p99.9"));
    assert!(error(&["run", "tiny", MIX, "--timeline"]).contains("--out"));
    assert!(error(&["run", "tiny", MIX, "--out", "x", "--timeline=5ms"]).contains("10ms..12ms"));
    assert!(error(&["run", "tiny", MIX, "--out", "x", "--series=0s"]).contains("longer than 0"));
    assert!(!keep.path().join("x").exists());
    let (keep, _) = run(&["--requests", "parquet"]);
    let output = floatgate(keep.path(), &["explain", "result", "99999999"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("no request 99999999"));
}

#[test]
#[cfg(target_os = "linux")]
fn errors_of_a_full_disk_name_the_file() {
    for name in ["requests.parquet", "series.parquet", "timeline.pftrace.gz"] {
        let directory = tempfile::tempdir().unwrap();
        let full = directory.path().join("full");
        fs::create_dir(&full).unwrap();
        std::os::unix::fs::symlink("/dev/full", full.join(name)).unwrap();
        let arguments = ["run", "tiny", MIX, "--out", "full", "--requests", "parquet", "--timeline"];
        let output = floatgate(directory.path(), &arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(name) && error.contains("No space left"), "{error}");
        assert_eq!(fs::read_dir(&full).unwrap().count(), 1, "{name}: only the link");
    }
}

/// Five requests in 0.4 s need 400 million windows of a nanosecond. Nearly all of them are empty.
#[test]
#[ignore = "writes two million rows; `make soak` runs it"]
fn windows_are_limited_and_the_warning_proposes_a_length() {
    let directory = tempfile::tempdir().unwrap();
    let run = |series: &str| {
        let job = "rw=randread rate_iops=10 number_ios=5";
        let output = floatgate(directory.path(), &["run", "tiny", job, "--out", "few", series]);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = run("--series=1ns");
    assert!(
        said.contains("series.parquet ends at 1.000000 ms of simulated time, where it reached its limit of 1,000,000"),
        "{said}"
    );
    assert!(said.contains("such as --series=500ns"), "{said}");
    // The last request arrives at 0.4 s: 800,000 windows.
    let result = directory.path().join("few");
    let last = |rows: &[Row]| rows[rows.len() - 1].clone();
    let rows = read_merged(&result.join("series.parquet"), 1000, last).unwrap();
    assert_eq!((rows.len(), rows[999].end_ps), (1000, 1_000_000_000));
    // Writing the report again gives the same bytes.
    let report = fs::read(result.join("report.html")).unwrap();
    assert!(report.len() < 2_000_000, "{}", report.len());
    assert!(floatgate(directory.path(), &["report", "few"]).status.success());
    assert!(fs::read(result.join("report.html")).unwrap() == report);
    assert!(run("--series=10us").is_empty());
}

/// There are many windows between two requests, and Ctrl-C does not wait for the next request.
#[test]
#[cfg(unix)]
fn ctrl_c_works_between_two_requests() {
    let bench = Bench::new();
    let run = ["run", "tlc-nvme", "rw=randread rate_iops=1 number_ios=5", "--precondition", "none"];
    let arguments = [&run[..], &["--out", "part", "--series=1us"]].concat();
    bench.interrupted(&arguments, "part/series.parquet");
    let rows = read_series(&bench.path("part/series.parquet")).unwrap();
    assert!(rows.len() < 900_000, "{}", rows.len());
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_leaves_whole_files() {
    let bench = Bench::new();
    let run = ["run", "tiny", "rw=randwrite number_ios=1g iodepth=8", "--out", "part", "--series=1ms"];
    let arguments = [&run[..], &["--requests=parquet", "--timeline=1ms..30ms"]].concat();
    // A growing file shows that the run has started.
    bench.interrupted(&arguments, "part/requests.parquet");
    let result = bench.path("part");
    let count = summary(&result)["requests"]["all"]["count"].as_u64().unwrap();
    assert_eq!(
        names(&result),
        ["digests.json", "report.html", "requests.parquet", "series.parquet", "summary.json", "timeline.pftrace.gz"]
    );
    assert_eq!(records(&result.join("requests.parquet")).len() as u64, count);
    let rows = read_series(&result.join("series.parquet")).unwrap();
    assert_eq!(rows.iter().map(|row| row.operations[1].count).sum::<u64>(), count);
    assert!(events(&result).len() > 1_000);
}
