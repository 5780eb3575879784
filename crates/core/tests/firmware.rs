//! Firmware model: its times to the picosecond, the queue for the cores, and the bound of the cores.

use crate::common::{self, Load, build, device_config, drain, fill, submit, units};
use Operation::{Read, Write};
use floatgate_core::results::{Part, Sample};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::timeline::{CoreWork, Probe, Task};

const US: u64 = 1_000_000;

/// Returns the time for which each core was busy until now.
fn core_times(device: &Device) -> Vec<Time> {
    let mut sample = Sample::default();
    device.sample(device.now(), &mut sample);
    sample.cores
}

/// Returns the device of Hu et al. 2011: pages of 2 KiB, 20 us and 51.2 us for a read, 200 us for a program.
fn papers(overrides: &[&str]) -> Device {
    let base = ["geometry.page_size=2KiB", "geometry.mapping_unit=2KiB", "nand.read=20us"];
    let options = Options { attribution: true, ..Options::default() };
    let mut device = build(device_config(&[&base, overrides].concat()), options);
    fill(&mut device, 64);
    device
}

/// Submits requests at the same time. Returns the latency and the firmware time of each, in the order of completion.
fn serve(device: &mut Device, requests: &[Request]) -> Vec<(u64, u64)> {
    let now = device.now();
    requests.iter().for_each(|&request| submit(device, now, request));
    let completions = drain(device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    let took = completions.iter().map(|completion| (completion.finish - completion.request.arrival).ps());
    took.zip(breakdowns).map(|(took, breakdown)| (took, breakdown.of(Part::Firmware).ps())).collect()
}

#[test]
fn the_firmware_share_of_a_read_matches_the_paper() {
    // Section 3.1: an instruction takes 10 ns, and firmware takes up to 18.9 % of a read. The instruction counts are
    // chosen to match that: (500 + 659 + 500) x 10 ns in addition to 20 + 51.2 us.
    let mut device = papers(&["controller.firmware.interrupt=500", "controller.firmware.lookup=659"]);
    let read = units(&device, Read, 0, 1);
    let software = (500 + 659 + 500) * 10_000;
    assert_eq!(serve(&mut device, &[read]), [(20 * US + 51_200_000 + software, software)]);
    let share = software as f64 / (20 * US + 51_200_000 + software) as f64;
    assert_eq!((share * 1000.0).round(), 189.0);
    assert_eq!(core_times(&device), [Time(software)]);
}

#[test]
fn a_cost_is_a_time_or_instructions_at_the_clock_rate() {
    let took = |overrides: &[&str]| {
        let mut device = papers(overrides);
        let read = units(&device, Read, 0, 1);
        serve(&mut device, &[read])[0].1
    };
    assert_eq!(took(&["controller.firmware.lookup=100"]), US);
    assert_eq!(took(&["controller.firmware.lookup=100", "controller.firmware.clock=400MHz"]), US / 4);
    assert_eq!(
        took(&["controller.firmware.lookup=100", "controller.firmware.clock=300MHz"]),
        333_334,
        "rounded up once"
    );
    assert_eq!(took(&["controller.firmware.lookup=\"1.5us\"", "controller.firmware.clock=400MHz"]), 3 * US / 2);
    assert_eq!(took(&["controller.firmware.allocation=100"]), 0, "a read allocates nothing");
    assert_eq!(took(&["controller.firmware.buffer=100"]), 0, "the device has no buffer");
    assert_eq!(took(&["controller.firmware.buffer=100", "buffer.capacity=64KiB"]), US);
}

#[test]
fn each_step_of_a_request_takes_the_time_of_its_task() {
    let costs = ["interrupt=100", "lookup=200", "allocation=400", "buffer=800", "gc=1600"];
    let costs = costs.map(|cost| format!("controller.firmware.{cost}"));
    let costs: Vec<&str> = costs.iter().map(String::as_str).collect();
    let program = 51_200_000 + 200 * US;
    let written = |more: &[&str], operation| {
        let mut device = papers(&[&costs, more].concat());
        let request = units(&device, operation, 0, 1);
        let result = serve(&mut device, &[request])[0];
        (result, core_times(&device)[0].ps())
    };
    assert_eq!(written(&[], Write), ((program + 8 * US, 8 * US), 8 * US), "receive, look up, allocate, complete");
    // A buffered write is received, stored in the buffer and completed. It is written to flash later.
    assert_eq!(written(&["buffer.capacity=64KiB"], Write), ((10 * US, 10 * US), 10 * US));
    let through = ["buffer.capacity=64KiB", "buffer.write=write-through"];
    assert_eq!(written(&through, Write), ((program + 16 * US, 16 * US), 16 * US));
    assert_eq!(written(&[], Operation::Trim), ((4 * US, 4 * US), 4 * US));
    // A unit is looked up and allocated when the buffer writes it back.
    let mut device = papers(&[&costs[..], &["buffer.capacity=64KiB"]].concat());
    let write = units(&device, Write, 0, 1);
    serve(&mut device, &[write]);
    let flush = Request::new(Time::ZERO, Operation::Flush, 0, 0);
    let flushed = serve(&mut device, &[flush]);
    assert_eq!(flushed, [(US + 6 * US + program + US, 2 * US)]);
    assert_eq!(core_times(&device), [Time(18 * US)]);
}

#[test]
fn requests_queue_for_the_cores() {
    // Three reads of three chips at the same time, each with a lookup of 10 us.
    let read = 20 * US + 51_200_000;
    let took = |cores: &str| {
        let mut device = papers(&[cores, "controller.firmware.lookup=1000"]);
        let reads: Vec<Request> = (0..3).map(|unit| units(&device, Read, unit, 1)).collect();
        let mut took = serve(&mut device, &reads);
        took.sort_unstable();
        (took, core_times(&device))
    };
    // Units 0 and 2 share a channel. The third lookup ends at 30 us, and its data follow those of the first read.
    let bus = 51_200_000;
    let (one, worked) = took("controller.firmware.cores=1");
    assert_eq!(one, [(10 * US + read, 10 * US), (20 * US + read, 20 * US), (10 * US + read + bus, 30 * US)]);
    assert_eq!(worked, [Time(30 * US)]);
    let (two, worked) = took("controller.firmware.cores=2");
    assert_eq!(two, [(10 * US + read, 10 * US), (10 * US + read, 10 * US), (10 * US + read + bus, 20 * US)]);
    assert_eq!(worked, [Time(20 * US), Time(10 * US)]);
}

/// Work of a core: core, task, start, end and wait in microseconds, number of units, and request.
type Seen = (u32, Task, u64, u64, u64, u32, Option<u64>);

/// Returns the work of the cores since the probe was set.
fn seen(device: &Device) -> Vec<Seen> {
    let works = device.array().probe().expect("a probe").works().iter();
    let tag = |work: &CoreWork| (work.tag != u64::MAX).then_some(work.tag);
    let us = |time: Time| time.ps() / US;
    works.map(|w| (w.core, w.task, us(w.start), us(w.end), us(w.waited), w.units, tag(w))).collect()
}

#[test]
fn a_probe_records_the_work_of_each_core() {
    let costs = ["interrupt=100", "lookup=200", "allocation=400", "buffer=800"];
    let costs = costs.map(|cost| format!("controller.firmware.{cost}"));
    let costs: Vec<&str> = costs.iter().map(String::as_str).collect();
    // Two reads of three pages and of one page: 1 us to receive each, then 2 us per page.
    let mut device = papers(&[&costs[..], &["controller.firmware.cores=2"]].concat());
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::from_us(50))));
    let (three, one) = (units(&device, Read, 0, 3), units(&device, Read, 8, 1));
    serve(&mut device, &[Request { tag: 7, ..three }, Request { tag: 8, ..one }]);
    let expected = [
        (0, Task::Receive, 0, 1, 0, 0, Some(7)),
        (1, Task::Receive, 0, 1, 0, 0, Some(8)),
        (0, Task::LookUp, 1, 3, 0, 1, Some(7)),
        // The second core finishes at the same time as the first but later in order. By then, two pages are queued.
        (1, Task::LookUp, 1, 3, 0, 1, Some(7)),
        (0, Task::LookUp, 3, 5, 2, 1, Some(7)),
        (1, Task::LookUp, 3, 5, 2, 1, Some(8)),
    ];
    assert_eq!(seen(&device), expected);
    // A core and a buffer; a write of two pages, 8 us each, then a read of one of them.
    let mut device = papers(&[&costs[..], &["buffer.capacity=64KiB"]].concat());
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    let (write, read) = (units(&device, Write, 0, 2), units(&device, Read, 1, 1));
    serve(&mut device, &[Request { tag: 1, ..write }, Request { tag: 2, ..read }]);
    let expected = [
        (0, Task::Receive, 0, 1, 0, 0, Some(1)),
        (0, Task::Receive, 1, 2, 1, 0, Some(2)),
        (0, Task::Write, 2, 10, 1, 1, Some(1)),
        (0, Task::Write, 10, 18, 9, 1, Some(1)),
        (0, Task::Search, 18, 26, 16, 1, Some(2)),
        (0, Task::Answer, 26, 27, 8, 0, Some(1)),
        (0, Task::Answer, 27, 28, 1, 0, Some(2)),
    ];
    assert_eq!(seen(&device), expected);
    // A flush: both units are looked up and allocated. This work belongs to no request.
    let flush = Request::new(Time::ZERO, Operation::Flush, 0, 0);
    serve(&mut device, &[Request { tag: 3, ..flush }]);
    let reported = seen(&device);
    let last: Vec<_> = reported[expected.len()..].iter().map(|w| (w.1, w.3 - w.2, w.4, w.5, w.6)).collect();
    let out = |waited| (Task::WriteOut, 6, waited, 1, None);
    let answer = (Task::Answer, 1, 0, 0, Some(3));
    assert_eq!(last, [(Task::Receive, 1, 0, 0, Some(3)), out(0), out(6), answer]);
    // The choice of a victim belongs to a plane and to no request.
    let mut device = papers(&["controller.firmware.gc=\"300us\"", "geometry.blocks=16", "gc.soft_threshold=1"]);
    let count = device.ftl().map.len();
    fill(&mut device, count);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    // Each of the four chips is a plane. The writes fill two blocks of the first one.
    let writes: Vec<Request> = (0..128).map(|unit| units(&device, Write, 4 * unit, 1)).collect();
    serve(&mut device, &writes);
    let works = device.array().probe().unwrap().works();
    assert!(!works.is_empty());
    for work in works {
        assert_eq!((work.task, work.end - work.start, work.tag), (Task::Choose, Time(300 * US), u64::MAX));
        assert_eq!(work.plane, 0, "all writes go to the first plane");
    }
}

#[test]
fn a_page_is_read_while_a_core_works_on_the_next() {
    // Two pages on two channels: the second is looked up while the first is read.
    let mut device = papers(&["controller.firmware.lookup=1000"]);
    let both = units(&device, Read, 0, 2);
    assert_eq!(serve(&mut device, &[both]), [(20 * US + 20 * US + 51_200_000, 20 * US)]);
}

#[test]
fn firmware_without_costs_changes_nothing() {
    let run = |overrides: &[&[&str]]| {
        let overrides = [&["geometry.page_size=16KiB"], overrides.concat().as_slice()].concat();
        let mut device = build(device_config(&overrides), Options::default());
        fill(&mut device, 10_000);
        let mut rng = Rng::new(3, "nothing");
        for index in 0..5000 {
            let operation = *[Read, Write, Operation::Trim].get(rng.below(3) as usize).unwrap();
            // Some requests find busy dies, others an idle device.
            let pause = if index % 8 == 0 { 20_000 * US } else { 0 };
            let at = device.now() + Time(pause + rng.below(100 * US));
            submit(&mut device, at, Request::new(at, operation, rng.below(70_000), 1 + rng.below(100) as u32));
        }
        drain(&mut device)
    };
    let advanced = [
        "geometry.planes=2",
        "allocation={ static = { order = \"plane-die-chip-channel\" } }",
        "nand.advanced={ multi_plane_read = true, multi_plane_program = \"wise\", cache_program = true }",
    ];
    let devices: [&[&str]; 5] = [
        &["host.link_bandwidth=1GB/s", "host.link_latency=1us"],
        &advanced,
        &[advanced[0], "allocation=dynamic", advanced[2]],
        &["geometry.pages_per_program=4"],
        &["buffer.capacity=1MiB", "geometry.pages_per_program=2"],
    ];
    for device in devices {
        assert_eq!(run(&[device]), run(&[device, &["controller.firmware.cores=3"]]), "{device:?}");
    }
}

#[test]
fn firmware_without_costs_keeps_the_pages_of_a_write_together() {
    let overrides = ["geometry.channels=1", "geometry.chips=1", "geometry.planes=2"];
    let advanced = ["nand.advanced.multi_plane_program=wise", "controller.firmware.cores=1"];
    let mut device = build(device_config(&[&overrides[..], &advanced].concat()), Options::default());
    let both = units(&device, Write, 0, 2);
    submit(&mut device, Time::ZERO, both);
    // Two transfers of 4 KiB at 25 ns per byte, and one program.
    assert_eq!(drain(&mut device)[0].finish, Time(2 * 102_400_000 + 200 * US));
}

#[test]
fn the_cores_limit_a_run() {
    // A read takes 5 + 2 x 10 us, so a core serves at most 40,000 per second. The result names the cores as bottleneck.
    let overrides = ["geometry.channels=16", "controller.firmware.interrupt=1000", "controller.firmware.lookup=500"];
    for (cores, bound) in [(1, 40_000.0), (2, 80_000.0)] {
        let cores = format!("controller.firmware.cores={cores}");
        let mut device = papers(&[&overrides[..], &[&cores]].concat());
        let count = device.ftl().map.len();
        fill(&mut device, count);
        let mut rng = Rng::new(1, "bound");
        let next = move || Request::new(Time::ZERO, Read, 4 * rng.below(u64::from(count)), 4);
        let outcome = Load::closed(128, 20_000, next).run(&mut device);
        common::assert_close("requests per second", common::rate(&outcome), bound, 0.01);
        let summary = common::history::summary_of(&outcome, &device);
        assert_eq!(summary.bottleneck.limited_by.as_deref(), Some("cores"));
        let found = summary.bottleneck.resources[0].bound_iops.unwrap();
        common::assert_close("bound", found, bound, 1e-6);
        let firmware = summary.firmware.unwrap();
        assert!(
            firmware.utilization.unwrap() > 0.99
                && firmware.cores.len() == summary.bottleneck.resources[0].units as usize
        );
        assert!(firmware.share_of_reads.unwrap() > 0.9);
    }
}

/// Returns the time from the arrival of the first write that starts garbage collection to the start of its first
/// operation.
fn gc_starts(overrides: &[&str]) -> u64 {
    let mut device = papers(overrides);
    let count = device.ftl().map.len();
    fill(&mut device, count);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    for second in 1..10_000 {
        let write = units(&device, Write, second, 1);
        let at = Time(second * 1_000_000 * US);
        submit(&mut device, at, write);
        drain(&mut device);
        let slices = device.array().probe().unwrap().slices();
        if let Some(first) = slices.iter().find(|slice| slice.class.is_collecting()) {
            return (first.start - at).ps();
        }
    }
    panic!("no write starts garbage collection");
}

#[test]
fn choosing_a_victim_takes_time() {
    // The write opens the block that makes garbage collection due. Its program occupies the chip for 251.2 us.
    assert_eq!(gc_starts(&[]), 251_200_000);
    assert_eq!(gc_starts(&["controller.firmware.gc=\"300us\""]), 300 * US);
    assert_eq!(gc_starts(&["controller.firmware.gc=\"100us\""]), 251_200_000);
}

#[test]
fn choices_of_victims_wait_for_a_core() {
    let run = |overrides: &[&str]| {
        let mut device =
            papers(&[&["geometry.blocks=16", "gc.soft_threshold=1", "gc.hard_threshold=0"], overrides].concat());
        let count = device.ftl().map.len();
        fill(&mut device, count);
        let before = device.ftl().counters.victims;
        let mut rng = Rng::new(1, "clean");
        let next = move || Request::new(Time::ZERO, Write, 4 * rng.below(u64::from(count)), 4);
        let outcome = Load::closed(16, 20_000, next).run(&mut device);
        (common::rate(&outcome), device.ftl().counters.victims - before, core_times(&device))
    };
    let cost = 1000 * US;
    // The threshold is one block, so writes wait for garbage collection and its choices.
    let (without, _, _) = run(&[]);
    let (with, victims, worked) = run(&["controller.firmware.gc=100000"]);
    assert!(with < without, "{with} writes in a second, {without} without");
    // Each choice takes time, also if no block is worth collecting.
    let choices = worked[0].ps() / cost;
    assert!(worked[0].ps().is_multiple_of(cost) && choices >= victims, "{choices} choices, {victims} victims");
    assert!(victims > 500 && choices < victims * 3 / 2, "{choices} choices, {victims} victims");
}
