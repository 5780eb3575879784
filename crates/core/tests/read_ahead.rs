//! Read-ahead: the latencies of a sequential stream, what triggers reads ahead, and changes of units during their read.
//!
//! The times are those of `common::BASE`: read 25 us, and 102.4 us for 4 KiB on the channel. Pages hold one unit, and
//! consecutive units are on the four chips in turn, two of them on each of the two channels.

use crate::common::{self, build, device_config, drain, fill, refusal, submit, units};
use Operation::{Read, Trim, Write};
use floatgate_core::internals::{BufferCounts, ReadCause};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::simulation::{Device, Options, Ssd};

const US: u64 = 1_000_000;
const CELL: u64 = 25 * US;
const DATA: u64 = 102_400_000;

/// A buffer that does not keep what the host reads, and reads 8 units ahead of 2 streams, from their second request on.
const AHEAD: [&str; 3] =
    ["buffer.capacity=256KiB", "buffer.read=false", "buffer.read_ahead={ size = \"32KiB\", streams = 2 }"];

/// Returns a device with its first 512 units in flash, in order.
fn machine(overrides: &[&str]) -> Device {
    let config = device_config(&[&AHEAD, overrides].concat());
    let mut device = build(config, Options { verify: true, ..Options::default() });
    fill(&mut device, 512);
    device
}

fn counts(device: &Device) -> BufferCounts {
    device.buffer().expect("a buffer").counts
}

fn pages(device: &Device) -> [u64; 2] {
    [ReadCause::Host, ReadCause::Ahead].map(|cause| device.ftl().counters.pages_read[cause as usize])
}

/// Runs the device until its next completion.
fn complete(device: &mut Device) -> Completion {
    let mut done = Vec::new();
    while done.is_empty() {
        let at = device.next_event().expect("a request is outstanding");
        device.advance(at);
        device.take_completions(&mut done);
    }
    assert_eq!(done.len(), 1);
    done.remove(0)
}

/// Reads one unit after another at depth 1. Returns the latencies.
fn stream(device: &mut Device, of: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut at = device.now();
    let read = |unit| {
        let request = units(device, Read, unit, 1);
        submit(device, at, request);
        let mut done = Vec::new();
        device.take_completions(&mut done);
        let done = done.pop().unwrap_or_else(|| complete(device));
        at = done.finish;
        (done.finish - done.request.arrival).ps()
    };
    of.into_iter().map(read).collect()
}

#[test]
fn the_latencies_of_a_stream_are_those_of_a_worked_example() {
    // A chip on each of two channels, which have even and odd units. With the second request, the units after it are
    // queued, so both chips work all the time, and a unit of each arrives every `CELL + DATA`. When an odd unit
    // arrives, the even one after it does, too.
    let latencies = stream(&mut machine(&["geometry.chips=1"]), 0..64);
    assert_eq!(latencies[..2], [CELL + DATA; 2], "the first requests read flash");
    let pairs = latencies[2..].chunks_exact(2);
    assert!(pairs.into_iter().all(|pair| pair == [0, CELL + DATA]), "{latencies:?}");
}

#[test]
fn a_stream_runs_at_the_bandwidth_of_the_channels() {
    let mut device = machine(&[]);
    let latencies = stream(&mut device, 0..512);
    // In a window that starts in the middle, two channels transfer a unit each in 102.4 us.
    let taken: u64 = latencies[100..500].iter().sum();
    common::assert_close("time of 400 units", taken as f64, (200 * DATA) as f64, 0.02);
    drain(&mut device);
    // The last unit of the device that is mapped is number 511.
    assert_eq!((pages(&device), counts(&device).ahead), ([2, 510], 510));
    assert_eq!(counts(&device).ahead_used, 510);
    assert_eq!(device.buffer().unwrap().occupancy(), [0, 0], "units leave the buffer when they were read");
}

#[test]
fn a_slow_link_hides_flash() {
    // 4096 B take 409.6 us on the link, and the latency of the link is 1 us each way.
    let link = ["host.link_bandwidth=10MB/s", "host.link_latency=1us"];
    let latencies = stream(&mut machine(&link), 0..64);
    let (link, latency) = (409_600_000, 2 * US);
    assert_eq!(latencies[..2], [latency + CELL + DATA + link; 2]);
    assert!(latencies[2..].iter().all(|&taken| taken == latency + link), "{latencies:?}");
}

#[test]
fn requests_that_do_not_continue_a_stream_read_nothing_ahead() {
    let mut device = machine(&[]);
    // No request continues one of the last two.
    let latencies = stream(&mut device, (0..200).map(|index| index * 37 % 500));
    assert_eq!(latencies, vec![CELL + DATA; 200]);
    assert_eq!((pages(&device), counts(&device).ahead), ([200, 0], 0));
}

#[test]
fn read_ahead_starts_with_the_given_number_of_requests() {
    for after in 2..6 {
        let mut device = machine(&[&format!("buffer.read_ahead.after={after}")]);
        stream(&mut device, 0..after - 1);
        assert_eq!(counts(&device).ahead, 0);
        stream(&mut device, [after - 1]);
        assert_eq!(counts(&device).ahead, 8);
    }
}

#[test]
fn more_is_read_when_half_is_left() {
    let mut device = machine(&[]);
    let ahead: Vec<u64> = (0..10)
        .map(|unit| {
            stream(&mut device, [unit]);
            counts(&device).ahead
        })
        .collect();
    // Request 1 reads up to unit 9. After request 5, units 6 to 9 are left, and up to unit 13 is read.
    assert_eq!(ahead, [0, 8, 8, 8, 8, 12, 12, 12, 12, 16]);
}

#[test]
fn a_third_stream_replaces_the_least_recently_used_one() {
    let mut device = machine(&[]);
    let of = |device: &mut Device, unit: u64| {
        stream(device, [unit]);
        counts(device).ahead
    };
    let script = [0, 100, 1, 200, 101, 2];
    let ahead = script.map(|unit| of(&mut device, unit));
    // Unit 200 replaces the stream of unit 100, so unit 101 starts a new one, which replaces that of unit 1.
    assert_eq!(ahead, [0, 0, 8, 8, 8, 8]);
    assert_eq!(pages(&device)[0], 5, "unit 2 was read ahead");
}

#[test]
fn a_whole_flash_page_is_read_at_once() {
    // Two units in a page.
    let mut device =
        machine(&["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB", "buffer.read_ahead.size=12KiB"]);
    stream(&mut device, [0, 1]);
    drain(&mut device);
    // Units 2 to 4 are due, and unit 5 shares a page with unit 4.
    assert_eq!((pages(&device), counts(&device).ahead), ([2, 2], 4));
}

/// Reads two units, and changes unit 4 while it is read ahead. Then reads on and returns the versions of unit 4.
fn changed(device: &mut Device, change: Option<Operation>) -> Vec<u32> {
    stream(device, [0, 1]);
    if let Some(operation) = change {
        let request = Request { tag: 77, ..units(device, operation, 4, 1) };
        let now = device.now();
        submit(device, now, request);
    }
    stream(device, [2, 3]);
    device.take_contents();
    stream(device, [4]);
    let versions = device.take_contents().pop().expect("a read").1;
    drain(device);
    device.check_invariants().unwrap();
    versions
}

#[test]
fn a_unit_that_changes_during_its_read_is_not_kept() {
    let untouched = changed(&mut machine(&[]), None);
    for policy in ["write-back", "write-through"] {
        for read in ["true", "false"] {
            if (policy, read) == ("write-through", "false") {
                continue;
            }
            let overrides = [format!("buffer.write={policy}"), format!("buffer.read={read}")];
            let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
            assert_eq!(changed(&mut machine(&overrides), None), untouched);
            assert_eq!(changed(&mut machine(&overrides), Some(Write)), [77; 8], "{overrides:?}");
            let blank = changed(&mut machine(&overrides), Some(Trim));
            assert_eq!(blank.len(), 8);
            assert!(blank.windows(2).all(|pair| pair[0] == pair[1]) && blank != [77; 8], "{blank:?}");
        }
    }
}

#[test]
fn reads_ahead_yield_to_reads_of_the_host() {
    // Unit 8 is on the chip of unit 0 and is read ahead. A random read of the same chip goes first, if reads are first.
    let wait = |scheduler: &str| {
        let mut device = machine(&["geometry.channels=1", "geometry.chips=1", &format!("scheduler={scheduler}")]);
        stream(&mut device, [0, 1]);
        let (now, request) = (device.now(), units(&device, Read, 300, 1));
        submit(&mut device, now, Request { tag: 5, ..request });
        let done = drain(&mut device).into_iter().find(|done| done.request.tag == 5).expect("a completion");
        (done.finish - done.request.arrival).ps()
    };
    // The first read ahead has started.
    assert_eq!(wait("read-first"), 2 * (CELL + DATA));
    assert_eq!(wait("fcfs"), 9 * (CELL + DATA));
}

#[test]
fn the_data_of_all_streams_must_fit_into_the_buffer() {
    let error = refusal(&["buffer.capacity=256KiB", "buffer.read_ahead.size=64KiB"]);
    assert!(error.contains("buffer.read_ahead.size") && error.contains("must be from 4KiB to 32KiB"), "{error}");
}
