//! Tests of `floatgate draw` with the real program.

use std::fs;

use crate::common::Bench;
use floatgate_core::device_file::Duration;
use floatgate_report::timeline::{ps, read_timeline};

/// Creates a directory with a result.
fn result(options: &[&str]) -> Bench {
    let bench = Bench::new();
    let run = ["run", "tiny", "rw=randrw bs=4k iodepth=4 number_ios=500", "--out", "result"];
    bench.good(&[&run, options].concat());
    bench
}

/// Returns the times of the boxes of a diagram, except those of the registers.
fn boxes(svg: &str) -> Vec<(u64, u64)> {
    let lines = svg.lines().filter(|line| line.starts_with("<g class=\"box ") && !line.contains("box register"));
    let number = |line: &str, name: &str| -> u64 {
        let rest = &line[line.find(name).unwrap() + name.len() + 2..];
        rest[..rest.find('"').unwrap()].parse().unwrap()
    };
    let mut all: Vec<_> = lines.map(|line| (number(line, "data-from-ps"), number(line, "data-to-ps"))).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_diagram_has_all_events_of_its_span() {
    let bench = result(&["--timeline"]);
    let place = bench.path("result");
    bench.good(&["draw", "result", "1ms..1500us"]);
    let drawn = fs::read_to_string(place.join("timeline.svg")).unwrap();
    let mut events = Vec::new();
    read_timeline(&place.join("timeline.pftrace.gz"), &mut |event| {
        let span = (ps(&event["ts"]), ps(&event["ts"]) + ps(&event["dur"]));
        if event["ph"] == "X" && span.0 < 1_500_000_000 && span.1 > 1_000_000_000 {
            events.push(span);
        }
        Ok(())
    })
    .unwrap();
    events.sort_unstable();
    assert!(events.len() > 10, "{events:?}");
    assert_eq!(boxes(&drawn), events);
    assert!(drawn.contains(">tiny, 1 ms to 1.5 ms</title>"), "{drawn}");
    // The timeline can be given by its path, with another output and title.
    let out = ["--out", "x.svg", "--title", "<a> & \u{1}b"];
    bench.good(&[&["draw", "result/timeline.pftrace.gz", "1ms..1500us"], &out[..]].concat());
    let other = fs::read_to_string(bench.path("x.svg")).unwrap();
    assert!(other.contains(">&lt;a&gt; &amp; \u{fffd}b</title>"), "{other}");
    assert_eq!(boxes(&other), events);
}

#[test]
fn errors_about_spans_propose_a_valid_span() {
    let bench = result(&["--timeline"]);
    let said = bench.refused(&["draw", "result"]);
    assert!(said.contains("but a diagram shows at most 300; give a shorter span, such as .."), "{said}");
    let span = said.trim_end().rsplit_once("such as ").unwrap().1;
    span.trim_start_matches("..").parse::<Duration>().unwrap();
    bench.good(&["draw", "result", span]);
    let drawn = fs::read(bench.path("result/timeline.svg")).unwrap();
    let said = bench.refused(&["draw", "result", "900s.."]);
    assert!(said.contains("has no channel or cell activity in this span; its activity is between 0ps and "), "{said}");
    assert_eq!(fs::read(bench.path("result/timeline.svg")).unwrap(), drawn, "what was drawn before is left");
    for (arguments, expected) in [
        (&["draw", "missing"][..], "cannot read missing: No such file"),
        (&["draw", "result/summary.json"], "result/summary.json is not a timeline"),
        (&["draw", "result", "5ms"], "expected a span of simulated time, such as 10ms..12ms"),
        (&["draw", "result", "5ms..1ms"], "the span must end after its start"),
    ] {
        let said = bench.refused(arguments);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_run_without_a_timeline_removes_the_old_diagram() {
    let bench = result(&["--timeline=1ms..2ms"]);
    bench.good(&["draw", "result", "1ms..1200us"]);
    bench.good(&["run", "tiny", "rw=read bs=4k number_ios=10", "--out", "result"]);
    assert!(!bench.path("result/timeline.svg").exists());
    let said = bench.refused(&["draw", "result"]);
    assert!(said.contains("result has no timeline.pftrace.gz: run again with --timeline"), "{said}");
}
