//! Single requests: those that the controller serves itself, reads of partial writes, and waits. Times are computed by
//! hand for the device of `common`: tR 25 us, tPROG 200 us, 4096 B at 25 ns = 102.4 us.

use crate::common::{Load, build, device_config, drain, fill, submit, units};
use floatgate_core::sim::request::Operation::{Read, Write};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

/// Returns a filled device.
fn device(overrides: &[&str]) -> Device {
    let mut device = build(device_config(overrides), Options::default());
    let units = device.ftl().map.len();
    fill(&mut device, units);
    device
}

/// Submits requests of `count` units from unit 0 on at the given picoseconds, and returns their completions.
fn serve(device: &mut Device, script: &[(u64, Operation, u32)]) -> Vec<Completion> {
    for &(at, operation, count) in script {
        let request = units(device, operation, 0, count);
        submit(device, Time(at), request);
    }
    drain(device)
}

#[test]
fn one_read_of_a_page_serves_all_its_units() {
    let mut device = device(&["geometry.page_size=16KiB", "geometry.spare_size=512B", "bus.transfer_spare=true"]);
    let one = serve(&mut device, &[(0, Read, 1)]);
    assert_eq!(
        one[0].finish,
        Time(25_000_000 + 4224 * 25_000),
        "a unit is transferred with its share of the spare bytes"
    );
    let at = device.now().0;
    let three = serve(&mut device, &[(at, Read, 3)]);
    assert_eq!(three[0].finish, Time(at + 25_000_000 + 3 * 4224 * 25_000));
    assert_eq!(device.ftl().counters.read_commands, 2);
}

#[test]
fn units_of_a_page_are_programmed_together() {
    for allocation in ["allocation=static", "allocation=dynamic"] {
        let mut device = device(&["geometry.page_size=16KiB", allocation]);
        let before = device.ftl().counters;
        let write = serve(&mut device, &[(0, Write, 4)]);
        let counted = device.ftl().counters.since(&before);
        assert_eq!((counted.program_commands, counted.units_padded), (1, 0), "{allocation}");
        assert_eq!(write[0].finish, Time(16_384 * 25_000 + 200_000_000), "{allocation}");
    }
}

#[test]
fn a_partial_write_reads_first() {
    let mut device = device(&[]);
    let before = device.ftl().counters;
    submit(&mut device, Time::ZERO, Request::new(Time::ZERO, Write, 1, 2));
    assert_eq!(drain(&mut device)[0].finish, Time(127_400_000 + 302_400_000));
    let counters = device.ftl().counters.since(&before);
    assert_eq!((counters.updates_uncovered, counters.pages_read[2], counters.pages_programmed[0]), (1, 1, 1));
}

#[test]
fn a_read_of_a_unit_in_a_write_slot_completes_at_once() {
    let mut device = device(&[]);
    for (at, operation) in [(0, Write), (10_000_000, Read)] {
        let request = units(&device, operation, 0, 1);
        submit(&mut device, Time(at), request);
    }
    let completions = drain(&mut device);
    assert_eq!(completions[0].finish, Time(10_000_000), "the read");
    assert_eq!(completions[1].finish, Time(302_400_000));
    assert_eq!(device.ftl().counters.slot_reads, 1);
}

#[test]
fn writes_of_one_unit_are_programmed_in_succession() {
    let two = serve(&mut device(&["allocation=dynamic"]), &[(0, Write, 1), (0, Write, 1)]);
    let finishes: Vec<u64> = two.iter().map(|completion| completion.finish.0).collect();
    assert_eq!(finishes, [302_400_000, 604_800_000], "although other dies are idle");
}

/// A slot of the host queue is occupied until the host has the completion. With a link of 5 us each way, the second
/// request, which arrived at the same time, is sent to the device only then.
#[test]
fn a_queue_slot_is_free_when_the_host_has_the_completion() {
    let link = ["host.queue_depth=1", "host.link_latency=5us"];
    let alone = 5_000_000 + 127_400_000 + 5_000_000;
    let finishes = |second: u64| {
        let mut device = device(&link);
        let script = [(0, Read, 1), (second, Read, 1)];
        serve(&mut device, &script).iter().map(|completion| completion.finish.0).collect::<Vec<u64>>()
    };
    assert_eq!(finishes(0), [alone, 2 * alone]);
    assert_eq!(finishes(135_000_000), [alone, 2 * alone], "the completion is still on the link");
    assert_eq!(finishes(alone), [alone, 2 * alone]);
    assert_eq!(finishes(alone + 1), [alone, 2 * alone + 1]);
}

/// While the completion of the only queue slot is on the link, no request is in the device and none can be issued. The
/// run must continue.
#[test]
fn a_full_queue_without_requests_in_the_device_does_not_end_a_run() {
    let mut device = device(&["host.queue_depth=1", "host.link_latency=5us"]);
    let outcome = Load::closed(1, 10, || Request::new(Time::ZERO, Read, 0, 8)).run(&mut device);
    assert_eq!(outcome.counters.read_commands, 10);
    assert_eq!(outcome.elapsed, Time(10 * (2 * 5_000_000 + 127_400_000) + 9 * 1_000));
    let data: u64 = outcome.channels.iter().map(|time| time.data.ps()).sum();
    assert_eq!(data, 10 * 102_400_000);
}

/// Queues of one and of two slots are equivalent for a host with one outstanding request, also if garbage collection
/// runs while a completion is on the link.
#[test]
fn a_queue_slot_that_is_freed_during_garbage_collection_is_used_at_once() {
    let elapsed = |depth: &str| {
        let mut device = device(&["geometry.blocks=16", "capacity.spare=0.35", "host.link_latency=5us", depth]);
        let units = u64::from(device.ftl().map.len());
        let mut unit = 0;
        let next = move || {
            unit = (unit + 7919) % units;
            Request::new(Time::ZERO, Write, unit * 8, 8)
        };
        let outcome = Load::closed(1, 3_000, next).run(&mut device);
        assert!(outcome.counters.blocks_erased > 10, "no garbage collection");
        outcome.elapsed
    };
    assert_eq!(elapsed("host.queue_depth=1"), elapsed("host.queue_depth=2"));
}
