//! The buffer: its latencies, when it writes back units, and what a flush guarantees.
//!
//! The times are those of `common::BASE`: read 25 us, program 200 us, and 102.4 us for 4 KiB on the channel.

use crate::common::{self, build, device, drain, fill, submit, units};
use Operation::{Flush, Read, Trim, Write};
use floatgate_core::device_file::{DeviceConfig, from_toml};
use floatgate_core::internals::{BufferCounts, ReadCause};
use floatgate_core::mapping::Location;
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const US: u64 = 1_000_000;
const READ: u64 = 25 * US + DATA;
const PROGRAM: u64 = 200 * US + DATA;
const DATA: u64 = 102_400_000;

/// Returns a device with a buffer of four units. The first 64 units are in flash.
fn buffered(overrides: &[&str]) -> Device {
    let mut device = device(&[&["buffer.capacity=16KiB"], overrides].concat());
    fill(&mut device, 64);
    device
}

/// Submits a request at `at`, waits until the device is idle, and returns the latency.
fn serve(device: &mut Device, at: u64, request: Request) -> u64 {
    submit(device, Time(at), request);
    let completions = drain(device);
    assert_eq!(completions.len(), 1, "{request:?}");
    (completions[0].finish - completions[0].request.arrival).ps()
}

/// Submits requests one at a time, a second apart, and returns their latencies.
fn play(device: &mut Device, script: &[(Operation, u64)]) -> Vec<u64> {
    let request = |device: &Device, (operation, unit): (Operation, u64)| match operation {
        Flush => Request::new(Time::ZERO, Flush, 0, 0),
        _ => units(device, operation, unit, 1),
    };
    let from = device.now().ps();
    let steps = script.iter().enumerate();
    steps.map(|(step, &what)| serve(device, from + (step as u64 + 1) * 1_000_000 * US, request(device, what))).collect()
}

fn counts(device: &Device) -> BufferCounts {
    device.buffer().expect("a buffer").counts
}

fn sectors(operation: Operation, lba: u64, sectors: u32) -> Request {
    Request::new(Time::ZERO, operation, lba, sectors)
}

#[test]
fn a_hit_takes_the_time_of_link_and_memory() {
    // 4096 B take 4.096 us on the link at 1 GB/s and 2.048 us in memory at 2 GB/s. Latencies: 2 us each way, 0.3 us.
    let slow = ["host.link_bandwidth=1GB/s", "host.link_latency=2us", "buffer.bandwidth=2GB/s", "buffer.latency=300ns"];
    let took = 2_000_000 + 4_096_000 + 2_048_000 + 300_000 + 2_000_000;
    assert_eq!(play(&mut buffered(&slow), &[(Write, 1), (Read, 1)]), [took, took]);
    assert_eq!(play(&mut buffered(&[]), &[(Write, 1), (Read, 1)]), [0, 0]);
    // A write-through takes the time of flash, and a read of its copy that of the buffer.
    let through = play(&mut buffered(&["buffer.write=write-through"]), &[(Write, 1), (Read, 1)]);
    assert_eq!(through, [PROGRAM, 0]);
}

#[test]
fn accesses_share_the_port_of_the_memory() {
    let mut device = buffered(&["buffer.bandwidth=2GB/s", "buffer.latency=300ns"]);
    for unit in 0..3 {
        let request = units(&device, Write, unit, 1);
        submit(&mut device, Time::ZERO, request);
    }
    let finishes: Vec<u64> = drain(&mut device).iter().map(|completion| completion.finish.ps()).collect();
    assert_eq!(finishes, [2_348_000, 4_396_000, 6_444_000], "one after another, each with the latency at its end");
}

#[test]
fn a_write_back_to_an_idle_die_uses_the_memory() {
    let mut device = buffered(&["buffer.bandwidth=2GB/s"]);
    // 2.048 us to store the unit, and the same again to write it back to the idle die.
    play(&mut device, &[(Write, 0), (Flush, 0)]);
    assert_eq!(device.buffer().unwrap().memory_time(device.now()), Time(2 * 2_048_000));
}

#[test]
fn hits_and_misses_of_a_worked_example() {
    // Four entries. A read from flash fills an entry, and the fifth unit evicts the least recently used one.
    let mut device = buffered(&[]);
    let script = [(Write, 0), (Write, 1), (Read, 2), (Read, 3), (Read, 0), (Write, 9), (Read, 1), (Read, 3), (Read, 2)];
    // Unit 1 is dirty and the oldest, so the write of unit 9 waits for its program. When unit 1 is read again, the
    // clean unit 2 is evicted. Then unit 3 is a hit and unit 2 a miss.
    assert_eq!(play(&mut device, &script), [0, 0, READ, READ, 0, PROGRAM, READ, 0, READ]);
    let seen = counts(&device);
    assert_eq!((seen.reads_hit, seen.reads_partial, seen.reads_miss), (2, 0, 4));
    assert_eq!((seen.writes_hit, seen.writes_new, seen.fills), (0, 3, 3));
    // The last read evicts the dirty unit 0, which takes a program, so the buffer does not keep unit 2.
    assert_eq!((seen.evictions, seen.evicted_clean), ([1, 0, 2], 1));
    assert_eq!(device.buffer().unwrap().volatile_units(), (1, 2));
}

#[test]
fn writes_of_a_unit_merge() {
    let mut device = buffered(&[]);
    let reads = |device: &Device| device.ftl().counters.pages_read[ReadCause::Rmw as usize];
    // Two halves of a unit: one program, and no read.
    assert_eq!(serve(&mut device, US, sectors(Write, 8, 4)), 0);
    assert_eq!(serve(&mut device, 2 * US, sectors(Write, 12, 4)), 0);
    assert_eq!(serve(&mut device, 3 * US, sectors(Flush, 0, 0)), PROGRAM);
    assert_eq!((counts(&device).writes_hit, counts(&device).written_back, reads(&device)), (1, 1, 0));
    // If there are gaps between the sectors, the rest of the unit is read first.
    let at = 1000 * US;
    for lba in [16, 18, 23] {
        assert_eq!(serve(&mut device, at + lba * US, sectors(Write, lba, 1)), 0);
    }
    assert_eq!(serve(&mut device, 2 * at, sectors(Flush, 0, 0)), READ + PROGRAM);
    assert_eq!((counts(&device).written_back, reads(&device)), (2, 1));
    assert_eq!(device.ftl().counters.updates_covered, 1);
    assert_eq!(device.ftl().counters.updates_uncovered, 1);
}

#[test]
fn a_partial_hit_reads_the_rest_and_keeps_it() {
    let mut device = buffered(&[]);
    assert_eq!(serve(&mut device, US, sectors(Write, 8, 2)), 0);
    assert_eq!(serve(&mut device, 1000 * US, sectors(Read, 8, 2)), 0, "sectors that were written");
    assert_eq!(serve(&mut device, 2000 * US, sectors(Read, 9, 3)), READ, "only one of three sectors is a hit");
    assert_eq!(serve(&mut device, 3000 * US, sectors(Read, 8, 8)), 0, "the previous read has filled the rest");
    let seen = counts(&device);
    assert_eq!((seen.reads_hit, seen.reads_partial, seen.reads_miss), (2, 1, 0));
    // The whole unit is in the buffer, so it is written without a read.
    assert_eq!(serve(&mut device, 4000 * US, sectors(Flush, 0, 0)), PROGRAM);
}

#[test]
fn a_flush_waits_for_earlier_writes() {
    let flush = |overrides: &[&str]| play(&mut buffered(overrides), &[(Flush, 0), (Write, 1), (Flush, 0), (Flush, 0)]);
    assert_eq!(flush(&[]), [0, 0, PROGRAM, 0]);
    assert_eq!(flush(&["buffer.power_loss_protection=true"]), [0; 4]);
    assert_eq!(flush(&["buffer.write=write-through"]), [0, PROGRAM, 0, 0]);

    // The first flush does not wait for a newer write of the same unit, the second one does. Both programs are on one
    // chip, one after the other.
    let mut device = buffered(&[]);
    let write = units(&device, Write, 1, 1);
    for (at, request) in [(0, write), (1, sectors(Flush, 0, 0)), (2, write), (3, sectors(Flush, 0, 0))] {
        submit(&mut device, Time(at * US), request);
    }
    let finishes: Vec<u64> = drain(&mut device).iter().map(|c| c.finish.ps()).collect();
    assert_eq!(finishes, [0, 2 * US, US + PROGRAM, US + 2 * PROGRAM]);
    assert_eq!(counts(&device).flushes_waited, 2);
}

#[test]
fn a_forced_write_waits_for_its_program_alone() {
    let forced = |overrides: &[&str]| {
        let mut device = buffered(overrides);
        let write = units(&device, Write, 1, 1);
        submit(&mut device, Time::ZERO, Request { lba: 0, ..write });
        let took = serve_last(&mut device, US, Request { fua: true, ..write });
        (took, device.buffer().unwrap().volatile_units().0)
    };
    assert_eq!(forced(&[]), (PROGRAM, 1), "the other unit stays dirty");
    assert_eq!(forced(&["buffer.power_loss_protection=true"]), (0, 0));
}

/// Returns the latency of a request that is submitted while others are outstanding and that completes last.
fn serve_last(device: &mut Device, at: u64, request: Request) -> u64 {
    submit(device, Time(at), request);
    let last: Completion = *drain(device).last().expect("it completes");
    (last.finish - last.request.arrival).ps()
}

#[test]
fn a_trimmed_unit_is_not_written() {
    let mut device = buffered(&[]);
    assert_eq!(play(&mut device, &[(Write, 1), (Trim, 1), (Flush, 0), (Read, 1)]), [0; 4]);
    assert_eq!((counts(&device).dropped, counts(&device).written_back), (1, 0));
    assert_eq!(device.buffer().unwrap().volatile_units(), (0, 1));
    assert_eq!(device.ftl().counters.unmapped_reads, 1);
}

#[test]
fn units_are_volatile_until_they_are_programmed() {
    let mut device = buffered(&[]);
    let three = units(&device, Write, 0, 3);
    submit(&mut device, Time::ZERO, three);
    let lost = |device: &Device| (0..5).filter(|&unit| device.buffer().unwrap().is_volatile(Lpn(unit))).count();
    assert_eq!((device.buffer().unwrap().volatile_units(), lost(&device)), ((3, 3), 3));
    submit(&mut device, Time(US), sectors(Flush, 0, 0));
    device.advance(Time(US + PROGRAM - 1));
    assert_eq!((device.buffer().unwrap().volatile_units().0, lost(&device)), (3, 3), "the programs are in flight");
    device.advance(Time(US + PROGRAM));
    // Two of the units share a channel, so one program ends 102.4 us later.
    assert_eq!((device.buffer().unwrap().volatile_units().0, lost(&device)), (1, 1));
    device.advance(Time(US + PROGRAM + DATA));
    assert_eq!((device.buffer().unwrap().volatile_units(), lost(&device)), ((0, 3), 0));
}

#[test]
fn units_of_one_program_are_written_together() {
    let pages = ["geometry.page_size=16KiB", "geometry.mapping_unit=4KiB"];
    let programs = |device: &Device| (device.ftl().counters.program_commands, device.ftl().counters.units_padded);
    for wordline in [1, 2] {
        let per_program = format!("geometry.pages_per_program={wordline}");
        let mut device = device(&[&pages[..], &[&per_program, "buffer.capacity=32KiB"]].concat());
        let before = programs(&device);
        // The units of a page, or of two pages, four pages apart, that static allocation sends to one plane.
        let page = |page: u64| (page * 4..page * 4 + 4).map(|unit| (Write, unit));
        let script: Vec<_> = page(0).chain(page(4)).chain([(Write, 100)]).collect();
        let took = play(&mut device, &script);
        assert!(took[8] > 0 && took[..8] == [0; 8], "the ninth unit has no room: {took:?}");
        let after = programs(&device);
        assert_eq!((after.0 - before.0, after.1 - before.1), (1, 0), "one full program");
        assert_eq!(counts(&device).companions, 4 * wordline - 1);
    }
}

#[test]
fn water_marks_and_idle_time_start_writing_back() {
    let water = ["buffer.capacity=40KiB", "buffer.high_water=0.5", "buffer.low_water=0.2"];
    let mut device = device(&water);
    let script: Vec<_> = (0..6).map(|unit| (Write, unit)).collect();
    assert_eq!(play(&mut device, &script), [0; 6]);
    // The sixth unit exceeds the high water mark of five. Units are evicted down to two.
    assert_eq!((counts(&device).evictions, counts(&device).written_back), ([0, 4, 0], 4));

    let mut device = buffered(&["buffer.idle=1ms"]);
    let write = units(&device, Write, 1, 1);
    submit(&mut device, Time::ZERO, write);
    device.advance(Time(1000 * US + PROGRAM - 1));
    assert_eq!(device.buffer().unwrap().volatile_units().0, 1);
    device.advance(Time(1000 * US + PROGRAM));
    assert_eq!(device.buffer().unwrap().volatile_units().0, 0);
}

#[test]
fn page_padding_writes_whole_blocks() {
    let padded_after = |script: &[(Operation, u64)], policy: &str| {
        let mut device = device(&["geometry.pages=8", "buffer.capacity=16KiB", &format!("buffer.eviction={policy}")]);
        fill(&mut device, 64);
        play(&mut device, script);
        let reads = device.ftl().counters.pages_read[ReadCause::Rmw as usize];
        (counts(&device).written_back, counts(&device).padding, reads, counts(&device).evictions[0])
    };
    // Units 8 and 11 of the block from 8 to 15, then three units of other blocks: the first block is evicted.
    let padded = |policy: &str| padded_after(&[(Write, 8), (Write, 11), (Write, 16), (Write, 24), (Write, 32)], policy);
    assert_eq!(padded("bplru"), (8, 6, 6, 2));
    assert_eq!(padded("{ bplru = { padding = false } }"), (2, 0, 0, 2));
    assert_eq!(padded("lru"), (1, 0, 0, 1));
    assert_eq!(padded("fab"), (2, 0, 0, 2));
    // The first unit of the block is already in flash: it is dropped, and the block is still filled up.
    let script = [(Write, 8), (Flush, 0), (Write, 11), (Write, 16), (Write, 24), (Write, 32)];
    assert_eq!(padded_after(&script, "bplru"), (9, 7, 7, 2));
}

#[test]
fn a_block_written_sequentially_is_evicted_next_for_any_request_size() {
    // Unit 32 of an old block, then the block of units 8 to 15 in steps, then one unit more than the capacity.
    let evicted = |steps: &[(u64, u32)]| {
        let policy = "buffer.eviction={ bplru = { padding = false } }";
        let mut device = device(&["geometry.pages=8", "buffer.capacity=36KiB", policy]);
        let mut script = vec![(32 * 8, 8)];
        script.extend(steps.iter().map(|&(first, count)| (64 + first, count)));
        script.push((48 * 8, 8));
        for (index, &(first, count)) in script.iter().enumerate() {
            serve(&mut device, index as u64 * 1_000_000 * US, sectors(Write, first, count));
        }
        counts(&device).evictions.iter().sum::<u64>()
    };
    let in_steps_of = |step: u32| (0..64).step_by(step as usize).map(|at| (at.into(), step.min(64 - at))).collect();
    let whole = 8;
    let alone = 1;
    for step in [4, 8, 12, 20, 64] {
        let steps: Vec<(u64, u32)> = in_steps_of(step);
        assert_eq!(evicted(&steps), whole, "steps of {step} sectors");
    }
    // The halves of one unit are swapped, half a unit is written twice, or half a unit is missing.
    let halves: Vec<(u64, u32)> = in_steps_of(4);
    let swapped: Vec<_> = [&halves[..4], &[halves[5], halves[4]], &halves[6..]].concat();
    let again: Vec<_> = [&halves[..4], &halves[3..]].concat();
    let skipped: Vec<_> = [&halves[..4], &halves[5..]].concat();
    for steps in [swapped, again, skipped] {
        assert_eq!(evicted(&steps), alone, "{steps:?}");
    }
}

/// Returns the rate of random writes with `depth` outstanding, in requests per second.
fn rate(overrides: &[&str], depth: u32) -> f64 {
    let mut device = device(overrides);
    let count = device.ftl().map.len();
    let mut rng = Rng::new(1, "rate");
    fill(&mut device, count);
    let next = move || Request::new(Time::ZERO, Write, 8 * rng.below(u64::from(count)), 8);
    common::rate(&common::Load::closed(depth, 20_000, next).run(&mut device))
}

#[test]
fn the_saturated_rate_is_that_of_flash() {
    // The buffer is much smaller than the run and large enough for all chips, so it does not change the rate in the
    // long run. It only merges hits, which are a share of 64 / 12288 of the writes.
    let without = rate(&[], 64);
    for policy in ["lru", "fifo", "clock", "cflru"] {
        let with = rate(&["buffer.capacity=256KiB", "buffer.read=false", &format!("buffer.eviction={policy}")], 64);
        common::assert_close(policy, with, without, 0.02);
    }
    let through = rate(&["buffer.capacity=256KiB", "buffer.write=write-through"], 64);
    common::assert_close("write-through", through, without, 0.001);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |split: bool| {
        let overrides =
            ["buffer.capacity=128KiB", "buffer.eviction=bplru", "buffer.bandwidth=1GB/s", "buffer.idle=1ms"];
        let firmware = ["controller.firmware.cores=2", "controller.firmware.lookup=200"];
        let mut device = device(&[&overrides[..], &firmware].concat());
        fill(&mut device, 4000);
        let mut rng = Rng::new(5, "same");
        for index in 0..3000u64 {
            let operation = *[Read, Write, Write, Trim, Flush].get(rng.below(5) as usize).unwrap();
            let at = device.now() + Time(rng.below(200 * US));
            let sectors = if operation == Flush { 0 } else { 1 + rng.below(24) as u32 };
            submit(&mut device, at, Request { tag: index, ..sectors_at(operation, rng.below(40_000), sectors) });
            if split && index == 1500 {
                device = device.clone();
            }
        }
        drain(&mut device)
    };
    assert_eq!(run(false), run(true));
}

fn sectors_at(operation: Operation, lba: u64, length: u32) -> Request {
    sectors(operation, lba, length)
}

/// After a flush, flash alone holds every write that completed before it.
#[test]
fn a_flush_makes_completed_writes_durable() {
    let policies = ["lru", "fifo", "clock", "cflru", "bplru", "fab"];
    for (seed, policy) in policies.iter().cycle().take(60).enumerate() {
        let mut rng = Rng::new(seed as u64, "durable");
        let mut overrides = vec![
            format!("buffer.eviction={policy}"),
            format!("buffer.capacity={}KiB", 4 * (1 + rng.below(24))),
            format!("buffer.read={}", rng.below(2) == 0),
            format!("geometry.page_size={}KiB", 4 << rng.below(3)),
            format!("controller.write_slots={}", 4 + rng.below(20)),
            "geometry.blocks=16".to_owned(),
            "capacity.spare=0.4".to_owned(),
        ];
        if rng.below(2) == 0 {
            overrides.push("controller.firmware.allocation=3000".to_owned());
        }
        let config: DeviceConfig = from_toml(common::BASE, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}"));
        let mut device = build(config, Options { verify: true, attribution: true, ..Options::default() });
        let mut expected = vec![0; 512];
        let mut waited = 0;
        for tag in 1..600u64 {
            let (first, length) = (rng.below(480), 1 + rng.below(32));
            let operation = *[Write, Write, Write, Read, Trim, Flush].get(rng.below(6) as usize).unwrap();
            let fua = rng.below(10) == 0;
            let length = if operation == Flush { 0 } else { length as u32 };
            let at = device.now() + Time(rng.below(500 * US));
            submit(&mut device, at, Request { tag, fua, ..sectors(operation, first, length) });
            let mut done = Vec::new();
            while done.is_empty() {
                let next = device.next_event();
                device.take_completions(&mut done);
                if done.is_empty() {
                    device.advance(next.unwrap_or_else(|| panic!("{}", device.explain_stall())));
                }
            }
            waited += u64::from(operation == Flush && done[0].finish > at);
            let end = first + u64::from(length);
            match operation {
                Write => expected[first as usize..end as usize].fill(tag as u32),
                Trim => expected
                    [first.next_multiple_of(8) as usize..(end / 8 * 8).max(first.next_multiple_of(8)) as usize]
                    .fill(0),
                _ => {}
            }
            let holds = |unit: usize| {
                let lpn = Lpn(unit as u32);
                // The data of a unit that page padding rewrites are in flash, although the map points at a write slot.
                let moves = matches!(device.ftl().map.get(lpn), Location::Slot(_));
                let is_safe = moves && !device.buffer().unwrap().is_volatile(lpn);
                is_safe || device.ftl().read_contents(lpn, 0, 8) == expected[unit * 8..][..8]
            };
            match operation {
                Flush => assert_eq!((0..64).find(|&unit| !holds(unit)), None, "{overrides:?}, request {tag}"),
                Write if fua => {
                    let lost = (first / 8..=(end - 1) / 8).find(|&unit| !holds(unit as usize));
                    assert_eq!(lost, None, "{overrides:?}, forced request {tag}");
                }
                _ => {}
            }
        }
        assert!(waited > 10, "{overrides:?}: {waited} flushes waited");
    }
}

#[test]
fn invalid_buffer_options_are_refused() {
    assert!(device(&["buffer.capacity=0B"]).buffer().is_none(), "an override can remove the buffer of the base");
    for (overrides, path) in [
        (&["buffer.capacity=2KiB"] as &[&str], "buffer.capacity"),
        (&["buffer.capacity=1MiB", "buffer.high_water=1.5"], "buffer.high_water"),
        (&["buffer.capacity=1MiB", "buffer.high_water=0.5"], "buffer.low_water"),
        (&["buffer.capacity=1MiB", "buffer.write=write-through", "buffer.read=false"], "buffer.read"),
        (&["buffer.capacity=1MiB", "buffer.bandwidth=1B/s"], "buffer.bandwidth"),
        (&["buffer.capacity=1MiB", "buffer.eviction={ cflru = { window = 2.0 } }"], "buffer.eviction.cflru.window"),
        (&["controller.firmware.cores=0"], "controller.firmware.cores"),
        (&["controller.firmware.clock=1Hz"], "controller.firmware.clock"),
        (&["controller.firmware.lookup=\"1s\""], "controller.firmware.lookup"),
    ] {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let error = from_toml(common::BASE, "test.toml", &overrides).expect_err(path);
        assert!(error.problems().iter().any(|problem| problem.path == path), "{overrides:?}: {error}");
    }
}
