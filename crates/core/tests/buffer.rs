//! The buffer: what it answers when, what it writes out, and what a flush promises.
//!
//! Figures are those of `common::BASE`: read 25 us, program 200 us, and 102.4 us for 4 KiB on the channel.

mod common;

use Operation::{Flush, Read, Trim, Write};
use common::{build, device, drain, fill, submit, units};
use floatgate_core::config::{DeviceConfig, from_toml};
use floatgate_core::device::{Device, Options};
use floatgate_core::ftl::mapping::Location;
use floatgate_core::metrics::counters::{BufferCounts, ReadCause};
use floatgate_core::sim::id::Lpn;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;

const US: u64 = 1_000_000;
const READ: u64 = 25 * US + DATA;
const PROGRAM: u64 = 200 * US + DATA;
const DATA: u64 = 102_400_000;

/// A device with a buffer of four units, of which the first 64 units are in flash.
fn buffered(overrides: &[&str]) -> Device {
    let mut device = device(&[&["buffer.capacity=16KiB"], overrides].concat());
    fill(&mut device, 64);
    device
}

/// Submits at `at`, waits until all is at rest, and returns how long it took.
fn serve(device: &mut Device, at: u64, request: Request) -> u64 {
    submit(device, Time(at), request);
    let completions = drain(device);
    assert_eq!(completions.len(), 1, "{request:?}");
    (completions[0].finish - completions[0].request.arrival).ps()
}

/// The same one after another, a second apart.
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
    device.buffer().expect("there is one").counts
}

fn sectors(operation: Operation, lba: u64, sectors: u32) -> Request {
    Request::new(Time::ZERO, operation, lba, sectors)
}

#[test]
fn a_hit_takes_the_link_and_the_memory() {
    // 4096 B at 1 GB/s are 4.096 us on the link, at 2 GB/s 2.048 us in memory; 2 us each way, and 0.3 us.
    let slow = ["host.link_bandwidth=1GB/s", "host.link_latency=2us", "buffer.bandwidth=2GB/s", "buffer.latency=300ns"];
    let took = 2_000_000 + 4_096_000 + 2_048_000 + 300_000 + 2_000_000;
    assert_eq!(play(&mut buffered(&slow), &[(Write, 1), (Read, 1)]), [took, took]);
    assert_eq!(play(&mut buffered(&[]), &[(Write, 1), (Read, 1)]), [0, 0]);
    // A write through has flash's time, its copy the buffer's.
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
    assert_eq!(finishes, [2_348_000, 4_396_000, 6_444_000], "one after another, the latency at the end of each");
}

#[test]
fn a_write_that_starts_at_once_uses_the_memory() {
    let mut device = buffered(&["buffer.bandwidth=2GB/s"]);
    // 2.048 us to take the unit, and as long again to write it out to the idle die.
    play(&mut device, &[(Write, 0), (Flush, 0)]);
    assert_eq!(device.memory_time(device.now()), Time(2 * 2_048_000));
}

#[test]
fn hits_and_misses_of_a_worked_example() {
    // Four places. Reads of flash bring their unit; the fifth unit takes the place of the least recently used one.
    let mut device = buffered(&[]);
    let script = [(Write, 0), (Write, 1), (Read, 2), (Read, 3), (Read, 0), (Write, 9), (Read, 1), (Read, 3), (Read, 2)];
    // Unit 1 is dirty and the oldest: 9 waits for its program. When it is read again, clean 2 goes for it; then 3 is
    // still there, and 2 is not.
    assert_eq!(play(&mut device, &script), [0, 0, READ, READ, 0, PROGRAM, READ, 0, READ]);
    let seen = counts(&device);
    assert_eq!((seen.reads_hit, seen.reads_partial, seen.reads_miss), (2, 0, 4));
    assert_eq!((seen.writes_hit, seen.writes_new, seen.fills), (0, 3, 3));
    // For unit 1 of the last three the dirty unit 0 had to go first, so there was no room for 2.
    assert_eq!((seen.evictions, seen.evicted_clean), ([1, 0, 2], 1));
    assert_eq!(device.buffer().unwrap().volatile_units(), (1, 2));
}

#[test]
fn writes_of_a_unit_merge() {
    let mut device = buffered(&[]);
    let reads = |device: &Device| device.ftl().counters.pages_read[ReadCause::Rmw as usize];
    // Halves of a unit: one program, and nothing is read.
    assert_eq!(serve(&mut device, US, sectors(Write, 8, 4)), 0);
    assert_eq!(serve(&mut device, 2 * US, sectors(Write, 12, 4)), 0);
    assert_eq!(serve(&mut device, 3 * US, sectors(Flush, 0, 0)), PROGRAM);
    assert_eq!((counts(&device).writes_hit, counts(&device).written_back, reads(&device)), (1, 1, 0));
    // With holes: the rest is read first.
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
    assert_eq!(serve(&mut device, 1000 * US, sectors(Read, 8, 2)), 0, "what was written");
    assert_eq!(serve(&mut device, 2000 * US, sectors(Read, 9, 3)), READ, "one sector of three");
    assert_eq!(serve(&mut device, 3000 * US, sectors(Read, 8, 8)), 0, "the rest has come with it");
    let seen = counts(&device);
    assert_eq!((seen.reads_hit, seen.reads_partial, seen.reads_miss), (2, 1, 0));
    // With the whole unit there, it is written without a read.
    assert_eq!(serve(&mut device, 4000 * US, sectors(Flush, 0, 0)), PROGRAM);
}

#[test]
fn a_flush_waits_for_what_came_before_it() {
    let flush = |overrides: &[&str]| play(&mut buffered(overrides), &[(Flush, 0), (Write, 1), (Flush, 0), (Flush, 0)]);
    assert_eq!(flush(&[]), [0, 0, PROGRAM, 0]);
    assert_eq!(flush(&["buffer.power_loss_protection=true"]), [0; 4]);
    assert_eq!(flush(&["buffer.write=write-through"]), [0, PROGRAM, 0, 0]);

    // A unit that is written again meanwhile is not waited for; a second flush waits for it. Both go to one chip, the
    // second behind the first.
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
    assert_eq!(forced(&[]), (PROGRAM, 1), "the other unit stays where it is");
    assert_eq!(forced(&["buffer.power_loss_protection=true"]), (0, 0));
}

/// The time of the last request, where others are in progress.
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
fn a_power_cut_would_lose_what_is_not_programmed() {
    let mut device = buffered(&[]);
    let three = units(&device, Write, 0, 3);
    submit(&mut device, Time::ZERO, three);
    let lost = |device: &Device| (0..5).filter(|&unit| device.buffer().unwrap().is_volatile(Lpn(unit))).count();
    assert_eq!((device.buffer().unwrap().volatile_units(), lost(&device)), ((3, 3), 3));
    submit(&mut device, Time(US), sectors(Flush, 0, 0));
    device.advance_to(Time(US + PROGRAM - 1));
    assert_eq!((device.buffer().unwrap().volatile_units().0, lost(&device)), (3, 3), "on their way is not there");
    device.advance_to(Time(US + PROGRAM));
    // Two of them share a channel, so one comes 102.4 us later.
    assert_eq!((device.buffer().unwrap().volatile_units().0, lost(&device)), (1, 1));
    device.advance_to(Time(US + PROGRAM + DATA));
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
        // The units of a page; of two pages that static allocation sends to one plane, four pages apart.
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
fn water_marks_and_idleness_write_ahead() {
    let water = ["buffer.capacity=40KiB", "buffer.high_water=0.5", "buffer.low_water=0.2"];
    let mut device = device(&water);
    let script: Vec<_> = (0..6).map(|unit| (Write, unit)).collect();
    assert_eq!(play(&mut device, &script), [0; 6]);
    // The sixth is above five; down to two.
    assert_eq!((counts(&device).evictions, counts(&device).written_back), ([0, 4, 0], 4));

    let mut device = buffered(&["buffer.idle=1ms"]);
    let write = units(&device, Write, 1, 1);
    submit(&mut device, Time::ZERO, write);
    device.advance_to(Time(1000 * US + PROGRAM - 1));
    assert_eq!(device.buffer().unwrap().volatile_units().0, 1);
    device.advance_to(Time(1000 * US + PROGRAM));
    assert_eq!(device.buffer().unwrap().volatile_units().0, 0);
}

#[test]
fn page_padding_fills_a_block_up() {
    let padded_after = |script: &[(Operation, u64)], policy: &str| {
        let mut device = device(&["geometry.pages=8", "buffer.capacity=16KiB", &format!("buffer.eviction={policy}")]);
        fill(&mut device, 64);
        play(&mut device, script);
        let reads = device.ftl().counters.pages_read[ReadCause::Rmw as usize];
        (counts(&device).written_back, counts(&device).padding, reads, counts(&device).evictions[0])
    };
    // Units 8 and 11 of the block from 8 to 15, then three of other blocks: the first block goes.
    let padded = |policy: &str| padded_after(&[(Write, 8), (Write, 11), (Write, 16), (Write, 24), (Write, 32)], policy);
    assert_eq!(padded("bplru"), (8, 6, 6, 2));
    assert_eq!(padded("{ bplru = { padding = false } }"), (2, 0, 0, 2));
    assert_eq!(padded("lru"), (1, 0, 0, 1));
    assert_eq!(padded("fab"), (2, 0, 0, 2));
    // The first of the block is in flash already: it is dropped, and the block is filled up all the same.
    let script = [(Write, 8), (Flush, 0), (Write, 11), (Write, 16), (Write, 24), (Write, 32)];
    assert_eq!(padded_after(&script, "bplru"), (9, 7, 7, 2));
}

#[test]
fn a_block_written_in_one_go_leaves_next_however_it_is_cut() {
    // Unit 32 of an old block, then the block of units 8 to 15 in steps, then one unit more than there is room for.
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
    let (whole, alone) = (8, 1);
    for step in [4, 8, 12, 20, 64] {
        let steps: Vec<(u64, u32)> = in_steps_of(step);
        assert_eq!(evicted(&steps), whole, "steps of {step} sectors");
    }
    // Not in order, the halves of one unit; not in one go, half a unit twice; not all of it.
    let halves: Vec<(u64, u32)> = in_steps_of(4);
    let swapped: Vec<_> = [&halves[..4], &[halves[5], halves[4]], &halves[6..]].concat();
    let again: Vec<_> = [&halves[..4], &halves[3..]].concat();
    let skipped: Vec<_> = [&halves[..4], &halves[5..]].concat();
    for steps in [swapped, again, skipped] {
        assert_eq!(evicted(&steps), alone, "{steps:?}");
    }
}

/// Random writes with so many outstanding: requests per second.
fn rate(overrides: &[&str], depth: u32) -> f64 {
    let mut device = device(overrides);
    let (count, mut rng) = (device.ftl().map.len(), Rng::new(1, "rate"));
    fill(&mut device, count);
    let next = move || Request::new(Time::ZERO, Write, 8 * rng.below(u64::from(count)), 8);
    common::rate(&common::Load::closed(depth, 20_000, next).run(&mut device))
}

#[test]
fn saturation_is_that_of_the_flash() {
    // A buffer that is small beside the run, and has enough for all chips: nothing is gained or lost in the long run.
    // It merges what it hits, which is a share of 64 / 12288 of the writes.
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

/// After a flush, flash alone holds every write that was answered before it.
#[test]
fn a_flush_makes_durable() {
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
                let next = device.next_event_time();
                device.take_completions(&mut done);
                if done.is_empty() {
                    device.advance_to(next.unwrap_or_else(|| panic!("{}", device.explain_stall())));
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
                // What is read and written with its block is there already; the map shows the write on its way.
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
        assert!(waited > 10, "{overrides:?}: {waited} flushes had to wait");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(device(&["buffer.capacity=0B"]).buffer().is_none(), "what a base has can be taken away");
    for (overrides, path) in [
        (&["buffer.capacity=2KiB"] as &[&str], "buffer.capacity"),
        (&["buffer.capacity=1MiB", "buffer.high_water=1.5"], "buffer.high_water"),
        (&["buffer.capacity=1MiB", "buffer.high_water=0.5"], "buffer.low_water"),
        (&["buffer.capacity=1MiB", "buffer.write=write-through", "buffer.read=false"], "buffer.read"),
        (&["buffer.capacity=1MiB", "buffer.bandwidth=1B/s"], "buffer.bandwidth"),
        (&["buffer.capacity=1MiB", "buffer.eviction={ cflru = { window = 2.0 } }"], "buffer.eviction.cflru"),
        (&["controller.firmware.cores=0"], "controller.firmware.cores"),
        (&["controller.firmware.clock=1Hz"], "controller.firmware.clock"),
        (&["controller.firmware.lookup=\"1s\""], "controller.firmware.lookup"),
    ] {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let error = from_toml(common::BASE, "test.toml", &overrides).expect_err(path);
        assert!(error.problems().iter().any(|problem| problem.path == path), "{overrides:?}: {error}");
    }
}
