//! Tests of whole traces: small files that are written here, and read back as requests.

use std::io::Write;

use super::super::FORMATS;
use super::super::detect::Confidence;
use super::super::format::Format;
use super::super::options::Fit;
use super::*;
use crate::sim::request::Operation;
use proptest::prelude::*;
use tempfile::NamedTempFile;

const DEVICE: u64 = 1 << 30;

fn file(bytes: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes.as_ref()).unwrap();
    file
}

/// Returns all requests of a trace, and the trace at its end.
fn read_on(text: impl AsRef<[u8]>, options: &TraceOptions, sectors: u64) -> Result<(Vec<Request>, Trace), String> {
    let file = file(text);
    let mut trace = Trace::open(file.path(), options, sectors).map_err(|error| error.0)?;
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request().map_err(|error| error.0)? {
        requests.push(request);
    }
    assert_eq!(trace.requests(), requests.len() as u64);
    Ok((requests, trace))
}

fn read(text: &str, options: &TraceOptions) -> Result<(Vec<Request>, Trace), String> {
    read_on(text, options, DEVICE)
}

fn error(text: &str, options: &TraceOptions) -> String {
    read(text, options).err().expect("an error")
}

fn arrivals(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.arrival.ps()).collect()
}

fn addresses(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.lba).collect()
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_trace_becomes_requests() {
    let text = "ASU,LBA,Size,Opcode,Timestamp\n0,8,4096,R,10.5\r\n\n0,32,512,w,10.500001\n# the end\n";
    let (requests, trace) = read(text, &TraceOptions::default()).unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], Request::new(Time::ZERO, Operation::Read, 8, 8));
    assert_eq!(requests[1], Request::new(Time::from_us(1), Operation::Write, 32, 1));
    assert_eq!(trace.detected().confidence, Confidence::Certain);
    assert_eq!(trace.pace(), Pace::Timed { depth: None });
    assert_eq!(trace.progress(), Some(1.0));
    assert_eq!(trace.warnings(), Vec::<String>::new());
    assert_eq!(trace.description(), "format spc (certain: no other format fits), times in s, 2 requests read");
}

#[test]
fn times_are_rebased_in_their_own_unit() {
    // Windows file times exceed 64 bits of picoseconds by far.
    let text = "128166372003061629,hm,1,Read,0,512,1\n128166372003061630,hm,1,Read,0,512,1\n";
    assert_eq!(arrivals(&read(text, &TraceOptions::default()).unwrap().0), [0, 100_000]);
    let text = "0,0,512,R,18446744073709551614.9999999999995\n0,0,512,R,18446744073709551615.0\n";
    assert_eq!(arrivals(&read(text, &TraceOptions::default()).unwrap().0), [0, 0]);
}

#[test]
fn units_and_scales_change_times() {
    let text = "1000 0 0 8 1\n1003 0 0 8 1\n";
    for (unit, ps) in [("ps", 3), ("ns", 3_000), ("100ns", 300_000), ("us", 3_000_000), ("ms", 3_000_000_000)] {
        let options = TraceOptions { time_unit: Some(unit.parse().unwrap()), ..TraceOptions::default() };
        let (requests, trace) = read(text, &options).unwrap();
        assert_eq!(arrivals(&requests), [0, ps], "{unit}");
        assert_eq!(trace.unit().to_string(), unit);
    }
    let options = TraceOptions { time_scale: "0.0005".parse().unwrap(), ..TraceOptions::default() };
    assert_eq!(arrivals(&read(text, &options).unwrap().0), [0, 2]);
}

#[test]
fn spans_beyond_simulated_time_are_refused() {
    let text = "0,0,512,R,5.0\n0,0,512,R,18446748.0\n0,0,512,R,18446750.0\n";
    let message = error(text, &TraceOptions::default());
    assert_has(&message, &["line 3", "18446745 s (213 days)", "213 days that", "--time-unit", "--time-scale"]);
    let options = TraceOptions { time_scale: "0.5".parse().unwrap(), ..TraceOptions::default() };
    assert_eq!(read(text, &options).unwrap().0.len(), 3);
    let options = TraceOptions { replay: Replay::Asap, ..TraceOptions::default() };
    assert_eq!(read(text, &options).unwrap().0.len(), 3);
}

#[test]
fn a_bad_line_stops_with_what_was_expected() {
    let text = "0,8,4096,R,1.0\n0,8,\u{fffd}\u{7}x,R,1.0\n";
    let message = error(text, &TraceOptions::default());
    assert_has(&message, &["line 2: `0,8,\u{fffd}\\u{7}x,R,1.0`", "expected the size in bytes", "format spc"]);
    assert_has(&message, &["--skip-bad-lines"]);
    assert_has(
        &error("0,8,512,R,1.0\n0,8,0,R,1.0\n", &TraceOptions::default()),
        &["line 2", "at least one byte", "--skip"],
    );
    // A second header is not skipped.
    assert_has(&error("asu,lba\n0,8,512,R,1\nasu,lba\n", &TraceOptions::default()), &["line 3: `asu,lba`"]);
    let long = format!("0,8,512,R,1.0\n0,8,512,R,1.0{}\n", " ".repeat(300_000));
    assert_has(&error(&long, &TraceOptions::default()), &["line 2", "...`: expected a line of at most 64 KiB"]);
}

#[test]
fn bad_lines_may_be_skipped_and_are_reported() {
    let text = "0,8,4096,R,1.0\nbad\n0,8,0,R,1.5\n0,8,4096,R,2.0\n";
    let options = |allowed| TraceOptions { skip_bad_lines: allowed, ..TraceOptions::default() };
    let (requests, trace) = read(text, &options(2)).unwrap();
    assert_eq!(requests.len(), 2);
    assert_has(&trace.warnings().join("\n"), &["2 bad lines were left out", "line 2: `bad`: expected"]);
    assert_has(&error(text, &options(1)), &["line 3", "1 bad lines were left out before it"]);
    assert_eq!(read(text, &options(9)).unwrap().1.warnings().len(), 1);
}

#[test]
fn time_running_backwards_is_an_error() {
    let text = "1.5 0 0 8 1\n2.25 0 8 8 1\n\n2.125 0 16 8 1\n";
    let message = error(text, &TraceOptions::default());
    assert_has(&message, &["line 4", "2.125 ms follows 2.25 ms of line 2", "--sort-window N"]);
    // Without times, there is no order to violate.
    let options = TraceOptions { replay: Replay::Depth(4), ..TraceOptions::default() };
    let (requests, trace) = read(text, &options).unwrap();
    assert_eq!(arrivals(&requests), [0, 0, 0]);
    assert_eq!(trace.pace(), Pace::Depth { depth: 4, think: Time::ZERO });
}

#[test]
fn a_window_sorts_and_keeps_equal_times_in_order() {
    let text = "3 0 0 8 1\n1 0 8 8 1\n3 0 16 8 1\n2 0 24 8 1\n1 0 32 8 1\n";
    let options = |sort_window| TraceOptions { sort_window, ..TraceOptions::default() };
    let (requests, _) = read(text, &options(4)).unwrap();
    assert_eq!(addresses(&requests), [8, 32, 24, 0, 16]);
    assert_eq!(arrivals(&requests), [0, 0, 1000, 2000, 2000]);
    assert_eq!(addresses(&read(text, &options(1000)).unwrap().0), [8, 32, 24, 0, 16]);
    assert_has(&error(text, &options(2)), &["line 5", "--sort-window 2 is too small"]);
    let options = TraceOptions { limit: Some(2), ..options(4) };
    assert_eq!(addresses(&read(text, &options).unwrap().0), [8, 32]);
}

#[test]
fn addresses_beyond_the_device_are_refused_or_fitted() {
    let text = "0,8,4096,R,1.0\n0,2003,2048,W,2.0\n0,4000,512,W,3.0\n";
    let on = |fit, sectors| {
        let options = TraceOptions { fit, ..TraceOptions::default() };
        read_on(text, &options, sectors).map(|(requests, trace)| (addresses(&requests), trace.warnings().join("\n")))
    };
    let message = on(Fit::Refuse, 1024).unwrap_err();
    assert_has(&message, &["line 3", "1024 sectors (512 KiB)", "4001", "--fit wrap", "--fit compact"]);
    let (wrapped, warning) = on(Fit::Wrap, 1024).unwrap();
    assert_eq!(wrapped, [8, 979, 928]);
    assert_has(&warning, &["2 of 3 requests lay behind the device"]);
    // Pages 1, 250 and 500. The offset within a page stays.
    assert_eq!(on(Fit::Compact, 1024).unwrap().0, [0, 11, 16]);
    assert_eq!(on(Fit::Compact, 24).unwrap().0, [0, 11, 16]);
    assert_has(&on(Fit::Compact, 23).unwrap_err(), &["touches 12 KiB", "the device has, 11.50 KiB"]);
    let merge = TraceOptions { devices: Devices::Merge, ..TraceOptions::default() };
    assert_has(&read_on(text, &merge, 1024).err().unwrap(), &["line 2", "sector 2003, 4 sectors long"]);
}

#[test]
fn devices_are_laid_out_selected_or_merged() {
    // Device 2 extends to sector 9, device 10 to 3001, device 7 to 1.
    let text = "1 10 3000 1 1\n2 2 8 1 1\n3 7 0 1 1\n4 10 0 1 0\n";
    let with = |devices: &str, fit| {
        let options = TraceOptions { devices: devices.parse().unwrap(), fit, ..TraceOptions::default() };
        read(text, &options).map(|(requests, _)| addresses(&requests))
    };
    assert_eq!(with("side-by-side", Fit::Refuse).unwrap(), [4096 + 3000, 8, 2048, 4096]);
    assert_eq!(with("merge", Fit::Refuse).unwrap(), [3000, 8, 0, 0]);
    assert_eq!(with("select=10", Fit::Refuse).unwrap(), [3000, 0]);
    assert_eq!(with("select=10,7", Fit::Refuse).unwrap(), [2048 + 3000, 0, 2048]);
    assert_eq!(with("side-by-side", Fit::Compact).unwrap(), [24, 0, 8, 16]);
    assert_eq!(with("merge", Fit::Compact).unwrap(), [16, 8, 0, 0]);
    assert_eq!(with("select=10", Fit::Compact).unwrap(), [8, 0]);
    assert_has(&with("select=3", Fit::Refuse).unwrap_err(), &["no request of device 3", "devices 2, 7, 10"]);
    assert_has(&with("select=7,3", Fit::Refuse).unwrap_err(), &["no request of device 3"]);
    let options = TraceOptions::default();
    let message = read_on(text, &options, 7000).err().unwrap();
    assert_has(&message, &["line 1", "device 10", "behind the 2 before it", "sector 7097", "7000 sectors"]);
}

#[test]
fn hosts_and_disks_are_laid_out_by_name() {
    let text = "1,web,0,Read,0,512,1\n2,hm,1,Read,0,512,1\n3,hm,0,Read,512,512,1\n";
    let with = |devices: &str| {
        let options = TraceOptions { devices: devices.parse().unwrap(), ..TraceOptions::default() };
        addresses(&read(text, &options).unwrap().0)
    };
    assert_eq!(with("side-by-side"), [4096, 2048, 1]);
    assert_eq!(with("select=hm_1"), [0]);
}

#[test]
fn a_limit_holds_for_what_is_read_and_for_what_is_surveyed() {
    let text = "1 0 0 1 1\n2 0 8 1 1\n3 0 99999999999 1 1\nbad\n";
    let options = TraceOptions { limit: Some(2), fit: Fit::Compact, ..TraceOptions::default() };
    assert_eq!(addresses(&read(text, &options).unwrap().0), [0, 8]);
    let none = TraceOptions { limit: Some(0), ..TraceOptions::default() };
    assert!(read(text, &none).unwrap().0.is_empty());
}

#[test]
fn widened_ranges_are_reported_once() {
    let (requests, trace) = read("0,8,700,R,1.0\n0,8,1,R,2.0\n0,8,512,R,3.0\n", &TraceOptions::default()).unwrap();
    assert_eq!(requests.iter().map(|request| request.sectors).collect::<Vec<_>>(), [2, 1, 1]);
    assert_eq!(trace.warnings().len(), 1);
    assert_has(&trace.warnings()[0], &["2 requests were not whole sectors"]);
}

#[test]
fn the_digest_depends_only_on_the_trace() {
    let digest = |text: &str, options: &TraceOptions, sectors| read_on(text, options, sectors).unwrap().1.digest();
    let text = "1000 0 0 8 1\n1500 1 80000 16 0\n";
    let plain = digest(text, &TraceOptions::default(), DEVICE);
    let other_device = TraceOptions { fit: Fit::Wrap, devices: Devices::Merge, ..TraceOptions::default() };
    assert_eq!(digest(text, &other_device, 1000), plain);
    let other_pace = TraceOptions { replay: Replay::Asap, time_scale: "3".parse().unwrap(), ..TraceOptions::default() };
    assert_eq!(digest(text, &other_pace, DEVICE), plain);
    // Equal requests in another format have the same digest.
    assert_eq!(digest("0,0,4096,R,0\n1,80000,8192,W,0.0000005\n", &TraceOptions::default(), DEVICE), plain);
    for changed in ["1000 0 0 8 1\n1501 1 80000 16 0\n", "1000 0 0 8 1\n1500 2 80000 16 0\n", "1000 0 0 8 1\n"] {
        assert_ne!(digest(changed, &TraceOptions::default(), DEVICE), plain);
    }
    for changed in ["1000 0 0 8 1\n1500 1 80001 16 0\n", "1000 0 0 8 1\n1500 1 80000 16 1\n"] {
        assert_ne!(digest(changed, &TraceOptions::default(), DEVICE), plain);
    }
}

/// A pipe can be read only once, which is sufficient for a trace that needs no first pass.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let shell = |command: &str| std::process::Command::new("sh").arg("-c").arg(command).arg(&pipe).spawn().unwrap();
    assert!(shell("mkfifo \"$0\"").wait().unwrap().success());
    let open = |options: &TraceOptions| {
        let mut writer = shell("printf '0,8,512,R,1.0\\n' > \"$0\"");
        let trace = Trace::open(&pipe, options, DEVICE);
        writer.wait().unwrap();
        trace
    };
    assert_has(&open(&TraceOptions::default()).err().unwrap().0, &["must be read twice", "--devices merge"]);
    let mut trace = open(&TraceOptions { devices: Devices::Merge, ..TraceOptions::default() }).unwrap();
    assert_eq!(trace.progress(), None);
    assert_eq!(trace.next_request().unwrap(), Some(Request::new(Time::ZERO, Operation::Read, 8, 1)));
    assert_eq!(trace.next_request().unwrap(), None);
}

/// Returns a valid line of each format.
const VALID: [&str; 5] = [
    "0,20941264,8192,W,0.551706",
    "128166372003061629,hm,1,Read,383496192,32768,413",
    "26214000 1 240840 6 0",
    "938513000 4 264719034 16 5",
    "5265.313\t0\t6357144\t8\t1f",
];

fn any_format() -> impl Strategy<Value = Option<&'static Format>> {
    proptest::option::of((0..FORMATS.len()).prop_map(|n| FORMATS[n]))
}

fn any_options() -> impl Strategy<Value = TraceOptions> {
    let fit = prop_oneof![Just(Fit::Refuse), Just(Fit::Wrap), Just(Fit::Compact)];
    let devices = prop_oneof![
        Just(Devices::SideBySide),
        Just(Devices::Merge),
        Just(Devices::Select(vec!["0".to_owned()])),
        Just(Devices::Select(vec!["0".to_owned(), "hm_1".to_owned()])),
    ];
    let replay = prop_oneof![Just(Replay::Timed), Just(Replay::Asap)];
    let numbers = (proptest::option::of(0..9_u64), 0..4_u32, 0..9_u64);
    (any_format(), fit, devices, replay, numbers).prop_map(|(format, fit, devices, replay, numbers)| {
        let (limit, sort_window, skip_bad_lines) = numbers;
        TraceOptions { format, fit, devices, replay, limit, sort_window, skip_bad_lines, ..TraceOptions::default() }
    })
}

/// Returns valid lines with a few changed bytes.
fn mutated_lines() -> impl Strategy<Value = Vec<u8>> {
    let line = (0..VALID.len(), proptest::collection::vec((any::<u16>(), any::<u8>()), 0..3));
    let separator = prop_oneof![Just(&b"\n"[..]), Just(&b"\r\n"[..]), Just(&b""[..])];
    proptest::collection::vec((line, separator), 0..12).prop_map(|lines| {
        let mut bytes = Vec::new();
        for ((line, changes), separator) in lines {
            let mut line = VALID[line].as_bytes().to_vec();
            for (place, byte) in changes {
                let place = place as usize % line.len();
                line[place] = byte;
            }
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(separator);
        }
        bytes
    })
}

/// Checks that reading ends without a panic, and that the requests are in order and on the device.
fn check(bytes: &[u8], options: &TraceOptions, sectors: u64) {
    if let Ok((requests, trace)) = read_on(bytes, options, sectors) {
        assert!(requests.iter().all(|request| request.lba + u64::from(request.sectors) <= sectors));
        assert!(requests.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
        assert!(requests.len() as u64 <= options.limit.unwrap_or(u64::MAX));
        let _ = (trace.warnings(), trace.description(), trace.progress());
    }
}

/// Returns a line that matches the columns, with arbitrary numbers and words.
fn columns(format: usize) -> BoxedStrategy<String> {
    let line = (any::<u64>(), 0..3_u32, any::<u64>(), any::<u64>(), 0..64_u32, 0..4_usize);
    line.prop_map(move |(time, device, lba, length, shift, operation)| {
        let (lba, length) = (lba >> shift, length >> shift);
        match FORMATS[format].name {
            "spc" => format!("{device},{lba},{length},{},{}.{time}", ["R", "w", "r", "X"][operation], time >> shift),
            "msr" => format!("{time},h,{device},{},{lba},{length},0", ["Read", "Write", "read", "X"][operation]),
            "disksim" => format!("{time}.{lba} {device} {lba} {length} {operation:x}"),
            _ => format!("{time} {device} {lba} {length} {operation}"),
        }
    })
    .boxed()
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes: Vec<u8>, options in any_options(), sectors in 0..100_000_u64) {
        check(&bytes, &options, sectors);
    }

    #[test]
    fn mutated_lines_do_no_harm(bytes in mutated_lines(), options in any_options(), sectors in 0..100_000_000_u64) {
        check(&bytes, &options, sectors);
    }

    #[test]
    fn extreme_numbers_do_no_harm(
        lines in (0..FORMATS.len()).prop_flat_map(|format| proptest::collection::vec(columns(format), 1..20)),
        mut options in any_options(),
        sectors in 1..u64::MAX,
    ) {
        options.format = None;
        options.skip_bad_lines = 20;
        // A footprint of up to 2 TiB per request would only take time.
        if options.fit == Fit::Compact {
            options.fit = Fit::Wrap;
        }
        check(lines.join("\n").as_bytes(), &options, sectors);
    }

    #[test]
    fn parsers_do_no_harm(bytes in prop_oneof![any::<Vec<u8>>(), mutated_lines()]) {
        for format in FORMATS {
            let mut parser = format.parser(&TraceOptions::default());
            parser.begin(&bytes);
            for line in bytes.split(|byte| *byte == b'\n') {
                let _ = parser.parse(line);
            }
        }
    }
}

/// Two recordings in one file, at a distance of a year: 20 requests each, one per millisecond.
fn two_recordings() -> String {
    let time = |n: u64| if n < 20 { n } else { n + 365 * 86_400_000 };
    (0..40).map(|n| format!("0,{},512,R,{}.{:03}\n", n * 8, time(n) / 1000, time(n) % 1000)).collect()
}

#[test]
fn a_jump_of_the_clock_is_named_with_what_to_do() {
    let message = error(&two_recordings(), &TraceOptions::default());
    assert_has(&message, &["line 21", "a gap of 365.0 days before line 21", "--max-gap 1s", "--replay depth=N"]);
    assert!(!message.contains("--time-unit"), "{message}");
    // Short enough to run: there is a warning about the gap, and none about the rate.
    let options = TraceOptions { time_scale: "0.1".parse().unwrap(), ..TraceOptions::default() };
    let warnings = read(&two_recordings(), &options).unwrap().1.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_has(&warnings[0], &["a gap of 365.0 days before line 21", "--max-gap 1s"]);
    let backwards: String = two_recordings().lines().rev().fold(String::new(), |text, line| text + line + "\n");
    assert_has(&error(&backwards, &TraceOptions::default()), &["line 2: time runs backwards", "--sort-window"]);
    let options = TraceOptions { sort_window: 10, ..TraceOptions::default() };
    assert_has(&error(&backwards, &options), &["sort-window 10 is too small"]);
    let set_back = two_recordings() + "0,0,512,R,7\n";
    assert_has(
        &error(&set_back, &TraceOptions { max_gap: Some(Time(1)), ..TraceOptions::default() }),
        &["line 41", "set back", "--replay depth=N"],
    );
}

#[test]
fn longer_gaps_are_shortened_before_times_are_scaled() {
    let ms = 1_000_000_000;
    let options =
        TraceOptions { max_gap: Some(Time(5 * ms)), time_scale: "2".parse().unwrap(), ..TraceOptions::default() };
    let (requests, trace) = read(&two_recordings(), &options).unwrap();
    let expected: Vec<u64> = (0..40).map(|n| 2 * ms * if n < 20 { n } else { n + 4 }).collect();
    assert_eq!(arrivals(&requests), expected);
    assert_has(&trace.warnings()[0], &["1 gap between requests shortened by --max-gap", "365.0 days"]);
    let whole = TraceOptions { replay: Replay::Depth(1), ..TraceOptions::default() };
    assert_eq!(trace.digest(), read(&two_recordings(), &whole).unwrap().1.digest());
    let message = error(&two_recordings(), &TraceOptions { max_gap: Some(Time(1)), ..whole });
    assert_has(&message, &["--max-gap", "--replay depth=1"]);
}
