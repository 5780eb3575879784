//! Writes that wait until others fill their wordline: `controller.fill_timeout`. See docs/model/mapping.md.

use crate::common::{self, build, device_config, submit, units};
use floatgate_core::results::{Breakdown, Part, ProgramCause};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Register to cells, and transfer of a page over the channel: 4096 cycles of 25 ns.
const PROGRAM: u64 = 200_000_000;
const PAGE: u64 = 4096 * 25_000;
const US: u64 = 1_000_000;

/// Returns a device with one plane. A wordline has three pages of one unit each, and writes wait for 500 us.
fn device(more: &[&str]) -> Device {
    let base = ["geometry.channels=1", "geometry.chips=1", "geometry.pages=63", "geometry.pages_per_program=3"];
    let overrides: Vec<&str> = base.iter().chain(&["controller.fill_timeout=500us"]).chain(more).copied().collect();
    build(device_config(&overrides), Options { attribution: true, ..Options::default() })
}

/// Submits requests at the given times in microseconds. Returns the time of completion in picoseconds and the latency
/// breakdown of each request, in the order of submission.
fn play(device: &mut Device, script: &[(u64, Request)]) -> Vec<(u64, Breakdown)> {
    let mut ends = Vec::new();
    let mut completions = Vec::new();
    let mut breakdowns = Vec::new();
    for (tag, &(at, request)) in script.iter().enumerate() {
        submit(device, Time::from_us(at), Request { tag: tag as u64, ..request });
    }
    while let Some(at) = device.next_event() {
        device.advance(at);
    }
    device.take_completions(&mut completions);
    device.take_breakdowns(&mut breakdowns);
    for (completion, breakdown) in completions.iter().zip(breakdowns) {
        ends.push((completion.request.tag, completion.finish.ps(), breakdown));
    }
    ends.sort_by_key(|end| end.0);
    device.check_invariants().unwrap();
    ends.into_iter().map(|(_, finish, breakdown)| (finish, breakdown)).collect()
}

fn write(device: &Device, unit: u64) -> Request {
    units(device, Operation::Write, unit, 1)
}

fn padded(device: &Device) -> u64 {
    device.ftl().counters.pages_programmed[ProgramCause::Padding as usize]
}

#[test]
fn a_wordline_starts_when_it_is_full() {
    let mut device = device(&[]);
    let script = [0, 30, 70].map(|at| (at, write(&device, at)));
    let ends = play(&mut device, &script);
    let end = 70 * US + 3 * PAGE + PROGRAM;
    assert_eq!(ends.iter().map(|end| end.0).collect::<Vec<_>>(), [end; 3]);
    assert_eq!(padded(&device), 0);
    // The wait for the last write is attributed to `Fill`.
    assert_eq!([0, 1, 2].map(|n| ends[n].1.of(Part::Fill).ps()), [70 * US, 40 * US, 0]);
}

#[test]
fn the_first_write_of_a_wordline_waits_for_the_timeout() {
    let mut device = device(&[]);
    let script = [0, 499, 501].map(|at| (at, write(&device, at)));
    let ends = play(&mut device, &script);
    // The third write is too late for the first program. Its own timeout ends while the plane programs.
    let first = 500 * US + 3 * PAGE + PROGRAM;
    assert!(first > 1001 * US);
    assert_eq!([ends[0].0, ends[1].0, ends[2].0], [first, first, first + 3 * PAGE + PROGRAM]);
    assert_eq!(padded(&device), 1 + 2);
    assert_eq!([0, 1, 2].map(|n| ends[n].1.of(Part::Fill).ps()), [500 * US, US, 500 * US]);
}

#[test]
fn a_flush_and_fua_do_not_wait() {
    let mut flushed = device(&[]);
    let flush = Request::new(Time::ZERO, Operation::Flush, 0, 0);
    let script = [(0, write(&flushed, 0)), (20, flush)];
    assert_eq!(play(&mut flushed, &script)[0].0, 20 * US + 3 * PAGE + PROGRAM);
    let mut forced = device(&[]);
    let script = [(0, write(&forced, 0)), (30, Request { fua: true, ..write(&forced, 1) })];
    let ends = play(&mut forced, &script);
    assert_eq!([ends[0].0, ends[1].0], [30 * US + 3 * PAGE + PROGRAM; 2], "it is programmed with the waiting write");
}

#[test]
fn a_flush_of_a_buffer_does_not_wait() {
    let mut device = device(&["buffer.capacity=1MiB"]);
    let flush = Request::new(Time::ZERO, Operation::Flush, 0, 0);
    let script = [(0, write(&device, 0)), (20, flush)];
    let ends = play(&mut device, &script);
    assert_eq!(ends[1].0, 20 * US + 3 * PAGE + PROGRAM);
}

#[test]
fn reads_find_waiting_writes() {
    let mut device = device(&[]);
    let script = [(0, write(&device, 7)), (10, units(&device, Operation::Read, 7, 1))];
    assert_eq!(play(&mut device, &script)[1].0, 10 * US);
}

#[test]
fn each_plane_or_pool_fills_its_own_programs() {
    // Static: units 0, 2 and 4 go to one channel, unit 1 to the other. Dynamic: any three are programmed together.
    for (allocation, ends_us) in [("static", [40, 500, 40, 40]), ("dynamic", [30, 30, 30, 540])] {
        let mut device = device(&["geometry.channels=2", &format!("allocation={allocation}")]);
        let script = [(0, 0), (0, 1), (30, 2), (40, 4)].map(|(at, unit)| (at, write(&device, unit)));
        let ends = play(&mut device, &script);
        let expected = ends_us.map(|us| us * US + 3 * PAGE + PROGRAM);
        assert_eq!([0, 1, 2, 3].map(|n| ends[n].0), expected, "{allocation}");
    }
}

#[test]
fn a_fill_timeout_needs_programs_of_several_units() {
    let overrides = ["controller.fill_timeout=1us".to_owned()];
    let error = floatgate_core::device_file::from_toml(common::BASE, "test.toml", &overrides)
        .expect_err("one unit per program");
    assert!(error.to_string().contains("one mapping unit fills a program"), "{error}");
}
