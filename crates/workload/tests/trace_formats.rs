//! Tests of every trace format: its sample is detected and parsed, and written traces read back unchanged.

use std::io::Write;

use crate::corpus::samples;
use floatgate_sim::source::Source;
use floatgate_workload::trace::{
    Confidence, Converted, Devices, FORMATS, Format, FormatChoice, Trace, TraceOptions, convert,
};
use proptest::prelude::*;

/// Format, confidence and number of requests of each sample.
const KNOWN: [(&str, &str, Confidence, u64); 27] = [
    ("alibaba.csv", "alibaba", Confidence::Certain, 40),
    ("biosnoop.libbpf", "biosnoop", Confidence::Certain, 40),
    ("biosnoop.txt", "biosnoop", Confidence::Certain, 40),
    ("biotracer.txt", "biotracer", Confidence::Certain, 40),
    ("blkparse.txt", "blkparse", Confidence::Certain, 46),
    ("blktrace.be", "blktrace", Confidence::Certain, 40),
    ("blktrace.le", "blktrace", Confidence::Certain, 40),
    ("delimited.txt", "delimited", Confidence::Given, 40),
    ("disksim.txt", "disksim", Confidence::Certain, 40),
    ("etw.csv", "etw", Confidence::Certain, 38),
    ("fio.v2", "fio", Confidence::Certain, 40),
    ("fio.v3", "fio", Confidence::Certain, 53),
    ("fiu.txt", "fiu", Confidence::Certain, 40),
    ("flashsim.txt", "flashsim", Confidence::Given, 40),
    ("ftrace.perf", "ftrace", Confidence::Certain, 40),
    ("ftrace.txt", "ftrace", Confidence::Certain, 40),
    ("iosnoop.txt", "iosnoop", Confidence::Certain, 40),
    ("wpa.csv", "wpa", Confidence::Certain, 40),
    ("floatgate.csv", "floatgate", Confidence::Certain, 40),
    ("mqsim.txt", "mqsim", Confidence::Ambiguous, 40),
    ("msr.csv", "msr", Confidence::Certain, 40),
    ("replay-log.csv", "replay-log", Confidence::Certain, 40),
    ("spc.txt", "spc", Confidence::Certain, 40),
    ("ssdsim.txt", "ssdsim", Confidence::Ambiguous, 40),
    ("systor.csv", "systor", Confidence::Certain, 40),
    ("tencent.csv", "tencent", Confidence::Certain, 40),
    ("vscsi.v1", "vscsi", Confidence::Certain, 40),
];

fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn read(bytes: &[u8], options: &TraceOptions) -> (Trace, u64) {
    let mut trace = Trace::open(file_of(bytes).path(), options, 1 << 40).unwrap_or_else(|error| panic!("{error}"));
    while trace.next_request().unwrap_or_else(|error| panic!("{error}")).is_some() {}
    let digest = trace.digest();
    (trace, digest)
}

fn converted(bytes: &[u8], options: &TraceOptions, to: &str) -> (Vec<u8>, Converted) {
    let mut out = Vec::new();
    let format = Format::written(to).unwrap();
    let done = convert(file_of(bytes).path(), options, format, &mut out, &mut |_| {});
    (out, done.unwrap_or_else(|error| panic!("{to}: {error}")))
}

#[test]
fn each_sample_is_detected_and_read() {
    let samples = samples();
    for (name, format, confidence, requests) in KNOWN {
        let sample = samples.iter().find(|sample| sample.name == name).expect(name);
        let (trace, _) = read(&sample.bytes, &sample.options);
        let detected = trace.detected();
        assert_eq!((detected.format.name, detected.confidence), (format, confidence), "{name}");
        assert_eq!(trace.requests(), requests, "{name}");
    }
    for format in FORMATS {
        assert!(KNOWN.iter().any(|(_, name, ..)| *name == format.name), "no sample of {}", format.name);
    }
}

/// The samples of tools that print requests when they complete contain the same requests as those of events, which are
/// recorded when requests are issued.
#[test]
fn tools_of_today_agree() {
    let samples = samples();
    let requests = |name: &str| {
        let sample = samples.iter().find(|sample| sample.name == name).expect(name);
        let mut trace = Trace::open(file_of(&sample.bytes).path(), &sample.options, 1 << 40).unwrap();
        let mut all = Vec::new();
        while let Some(request) = trace.next_request().unwrap() {
            all.push((request.arrival.ps() / 1_000_000, request.operation, request.lba, request.sectors));
        }
        assert!(trace.warnings().is_empty(), "{name}: {:?}", trace.warnings());
        all
    };
    let expected = requests("ftrace.txt");
    for name in ["ftrace.perf", "iosnoop.txt", "biosnoop.txt", "biosnoop.libbpf", "wpa.csv"] {
        assert_eq!(requests(name), expected, "{name}");
    }
}

/// Two versions, or two byte orders, of a format give the same requests.
#[test]
fn versions_of_a_format_agree() {
    let samples = samples();
    let digest = |name: &str| {
        let sample = samples.iter().find(|sample| sample.name == name).expect(name);
        read(&sample.bytes, &sample.options).1
    };
    assert_eq!(digest("blktrace.be"), digest("blktrace.le"));
    assert_eq!(digest("vscsi.v1"), digest("vscsi.v2"));
}

/// Returns a trace in `spc` format, with devices numbered by first occurrence, and times from 0 in whole ticks.
fn spc_text(tick_ns: u64, granule: u64) -> impl Strategy<Value = String> {
    let request = (0..5_000_u64, 0..4_usize, any::<bool>(), 0..(1_u64 << 31) / granule - 64, 1..64_u64);
    proptest::collection::vec(request, 1..40).prop_map(move |requests| {
        let (mut ns, mut devices, mut text) = (0, Vec::new(), String::new());
        for (place, (gap, device, reads, at, length)) in requests.into_iter().enumerate() {
            ns += if place == 0 { 0 } else { gap * tick_ns };
            let rank = devices.iter().position(|known| *known == device).unwrap_or(devices.len());
            if rank == devices.len() {
                devices.push(device);
            }
            let (lba, bytes, operation) = (at * granule, length * granule * 512, if reads { 'R' } else { 'W' });
            let (seconds, fraction) = (ns / 1_000_000_000, format!(".{:09}", ns % 1_000_000_000));
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            text += &format!("{rank},{lba},{bytes},{operation},{seconds}{fraction}\n");
        }
        text
    })
}

/// Each format that can be written, its time resolution in ns, and its granularity in sectors.
const WRITTEN: [(&str, u64, u64); 11] = [
    ("spc", 1, 1),
    ("msr", 100, 1),
    ("ssdsim", 1, 1),
    ("mqsim", 1, 1),
    ("disksim", 1, 1),
    ("flashsim", 1, 8),
    ("blkparse", 1, 1),
    ("fio", 1_000, 1),
    ("alibaba", 1_000, 1),
    ("tencent", 1_000_000_000, 1),
    ("systor", 1, 1),
];

#[test]
fn every_format_with_a_writer_is_tested() {
    for format in FORMATS.iter().filter(|format| format.is_written()) {
        assert!(WRITTEN.iter().any(|(name, ..)| *name == format.name), "{} is not in WRITTEN", format.name);
    }
}

fn cases() -> impl Strategy<Value = (&'static str, String)> {
    (0..WRITTEN.len()).prop_flat_map(|place| {
        let (name, tick_ns, granule) = WRITTEN[place];
        (Just(name), spc_text(tick_ns, granule))
    })
}

proptest! {
    /// Converting to another format and back gives the same text.
    #[test]
    fn formats_round_trip((name, text) in cases()) {
        let spc = TraceOptions { format: Some(Format::named("spc").unwrap()), ..TraceOptions::default() };
        let (there, first) = converted(text.as_bytes(), &spc, name);
        prop_assert_eq!(first.warnings, Vec::<String>::new());
        // A few lines of integers match several formats, so the format is given.
        let options = TraceOptions { format: Some(Format::named(name).unwrap()), ..TraceOptions::default() };
        let (back, second) = converted(&there, &options, "spc");
        prop_assert_eq!(first.requests, second.requests);
        prop_assert_eq!(String::from_utf8(back).unwrap(), text);
    }

    /// Converting trims and flushes between the two formats that support them, and back, gives the same text.
    #[test]
    fn trims_and_flushes_round_trip(
        requests in proptest::collection::vec((0..9_000_u64, 0..4_usize, 0..1_u64 << 40, 1..1_000_u64), 1..40),
    ) {
        let mut text = "fio version 3 iolog\n".to_owned();
        let mut us = 0;
        let mut start = "0 device0 add\n0 device0 open\n";
        for (gap, action, lba, sectors) in requests {
            us += if start.is_empty() { gap } else { 0 };
            let action = ["read", "write", "trim", "sync"][action];
            let (offset, bytes) = if action == "sync" { (0, 0) } else { (lba * 512, sectors * 512) };
            text += &format!("{}{us} device0 {action} {offset} {bytes}\n", std::mem::take(&mut start));
        }
        let as_they_are = TraceOptions { time_unit: Some("us".parse().unwrap()), ..TraceOptions::default() };
        let (there, _) = converted(text.as_bytes(), &as_they_are, "blkparse");
        let (back, _) = converted(&there, &TraceOptions::default(), "fio");
        prop_assert_eq!(String::from_utf8(back).unwrap(), text);
    }
}

/// Returns the options in the command that a warning prints.
fn printed(warning: &str) -> TraceOptions {
    let (_, after) = warning.split_once("--format '").unwrap_or_else(|| panic!("no command: {warning}"));
    let choice: FormatChoice = after.split('\'').next().unwrap().parse().unwrap_or_else(|error| panic!("{error}"));
    TraceOptions { format: Some(choice.format), columns: choice.columns, ..TraceOptions::default() }
}

#[test]
fn bytes_in_place_of_sectors_are_reported_with_the_right_command() {
    let sectors: Vec<(u64, u64, u64)> = (1..=40).map(|n| (n * 1_000_000, n * n % 97 * 8, n % 5 * 8 + 8)).collect();
    let line = |scale: u64| {
        let lines = sectors
            .iter()
            .map(|(ns, lba, length)| format!("{ns} 0 {} {} {}\n", lba * scale, length * scale, ns / 1_000_000 % 3 % 2));
        lines.collect::<String>()
    };
    let (right, wrong) = (line(1), line(512));
    let (plain, digest) = read(right.as_bytes(), &TraceOptions::default());
    assert_eq!(plain.warnings(), Vec::<String>::new());
    let (trace, _) = read(wrong.as_bytes(), &TraceOptions::default());
    let warning = trace.warnings().join("\n");
    assert!(warning.contains("all addresses and lengths are multiples of 512"), "{warning}");
    assert!(warning.contains("floatgate trace info /"), "{warning}");
    let (again, of_again) = read(wrong.as_bytes(), &printed(&warning));
    assert_eq!((again.warnings(), of_again), (Vec::new(), digest), "the command gives the intended requests");
    // Conversion gives the same warning, and so does the error for a trace that seems too large for the device.
    let (_, done) = converted(wrong.as_bytes(), &TraceOptions::default(), "spc");
    assert!(done.warnings.iter().any(|warning| warning.contains("--format 'delimited:")), "{:?}", done.warnings);
    for options in [TraceOptions::default(), TraceOptions { devices: Devices::Merge, ..TraceOptions::default() }] {
        let file = file_of(wrong.as_bytes());
        let opened = Trace::open(file.path(), &options, 200_000);
        let error = opened.and_then(|mut trace| {
            while trace.next_request()?.is_some() {}
            Ok(())
        });
        let error = error.unwrap_err().to_string();
        let advice = error.contains("--fit wrap") && error.contains("--format 'delimited:");
        assert!(advice || options.devices == Devices::Merge, "{error}");
    }
}

#[test]
fn a_format_is_not_certain_if_its_units_are_uncertain() {
    let detected = |line: &dyn Fn(u64) -> String| {
        let text: String = (1..=40).map(line).collect();
        read(text.as_bytes(), &TraceOptions::default()).0.detected()
    };
    // The units may be pages of 4 KiB or blocks of 512 B: the file does not show it.
    let pages = detected(&|n| format!("{}.5 0 {} 1 {}\n", n * 3, n * 7 % 31, n % 2));
    assert_eq!((pages.format.name, pages.confidence), ("disksim", Confidence::Ambiguous));
    assert!(pages.to_string().contains("flashsim in us would fit as well"), "{pages}");
    // Addresses that look like bytes, and times that look like another unit.
    let bytes = detected(&|n| format!("0,{},4096,R,{n}\n", n * n % 97 * 4096));
    assert_eq!((bytes.format.name, bytes.confidence), ("spc", Confidence::Doubtful));
    let fast = detected(&|n| format!("0,{},4096,R,0.00000000{n:03}\n", n * n % 97));
    assert_eq!((fast.format.name, fast.confidence), ("spc", Confidence::Doubtful));
    assert!(fast.to_string().contains("doubtful"), "{fast}");
}

#[test]
fn windows_events_are_sorted_by_issue() {
    let sample = samples().into_iter().find(|sample| sample.name == "etw.csv").expect("a sample");
    let mut trace = Trace::open(file_of(&sample.bytes).path(), &sample.options, 1 << 40).unwrap();
    let mut arrivals = Vec::new();
    while let Some(request) = trace.next_request().unwrap() {
        arrivals.push(request.arrival);
    }
    assert!(arrivals.is_sorted() && trace.warnings().is_empty(), "{:?}", trace.warnings());
    // The events of the issue of requests have the same times.
    let text = String::from_utf8(sample.bytes.clone()).unwrap();
    let issued = text.lines().filter(|line| line.contains("Init, ") && !line.contains("TimeStamp"));
    let issued: Vec<u64> = issued.map(|line| line.split(',').nth(1).unwrap().trim().parse().unwrap()).collect();
    let expected: Vec<u64> = issued.iter().map(|us| (us - issued[0]) * 1_000_000).collect();
    assert_eq!(arrivals.iter().map(|arrival| arrival.ps()).collect::<Vec<_>>(), expected);
    // A window that is too small is an error, as for any format.
    let small = TraceOptions { sort_window: 1, ..sample.options };
    let error = Trace::open(file_of(&sample.bytes).path(), &small, 1 << 40).and_then(|mut trace| {
        while trace.next_request()?.is_some() {}
        Ok(())
    });
    assert!(error.unwrap_err().to_string().contains("--sort-window 1 is too small"));
}
