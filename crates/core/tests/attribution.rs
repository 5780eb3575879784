//! Latency breakdown of requests, to the picosecond: computed by hand, and compared with the phases that a probe
//! recorded.
//!
//! The device of the first tests takes 25 us to read a page, 200 us to program it, and 102.4 us to move it over its
//! channel.

use std::collections::BTreeMap;

use crate::common::{self, device_config, drain, fill, submit, units};
use floatgate_core::results::{Breakdown, Part};
use floatgate_core::sim::id::Ppn;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};
use floatgate_core::timeline::{Kind, Lane, Phase, Probe, Slice};

const READ: u64 = 25_000_000;
const PROGRAM: u64 = 200_000_000;
const PAGE: u64 = 102_400_000;

fn device(overrides: &[&str]) -> Device {
    let options = Options { attribution: true, ..Options::default() };
    let mut device = common::build(device_config(overrides), options);
    let logical = device.ftl().map.len();
    fill(&mut device, logical);
    device
}

/// Completes all requests and returns the breakdowns by tag. Checks that the parts of each breakdown add up.
fn breakdowns(device: &mut Device) -> BTreeMap<u64, (Completion, Breakdown)> {
    let completions = drain(device);
    let mut breakdowns = Vec::new();
    device.take_breakdowns(&mut breakdowns);
    assert_eq!(completions.len(), breakdowns.len());
    let both = completions.into_iter().zip(breakdowns);
    both.map(|(completion, breakdown)| {
        assert_eq!(breakdown.total(), completion.finish - completion.request.arrival, "{completion:?} {breakdown:?}");
        (completion.request.tag, (completion, breakdown))
    })
    .collect()
}

/// Submits requests of one unit each at time 0, and returns the non-zero parts of each request in picoseconds.
fn parts(overrides: &[&str], requests: &[(Operation, u64)]) -> Vec<Vec<(Part, u64)>> {
    let mut device = device(overrides);
    for (tag, &(operation, unit)) in requests.iter().enumerate() {
        let request = Request { tag: tag as u64, ..units(&device, operation, unit, 1) };
        submit(&mut device, Time::ZERO, request);
    }
    let of = |breakdown: &Breakdown| {
        let all = Part::ALL.map(|part| (part, breakdown.of(part).ps()));
        all.into_iter().filter(|(_, ps)| *ps > 0).collect()
    };
    breakdowns(&mut device).values().map(|(_, breakdown)| of(breakdown)).collect()
}

// Units are allocated to the channels first, then to the chips. Units 0 and 1 are on two channels, 0 and 2 on two chips
// of one channel, 0 and 4 on one chip.
use Operation::{Read, Write};

#[test]
fn a_request_alone_waits_for_nothing() {
    assert_eq!(parts(&[], &[(Read, 0)]), [[(Part::Bus, PAGE), (Part::Cell, READ)]]);
    assert_eq!(parts(&[], &[(Write, 0)]), [[(Part::Bus, PAGE), (Part::Cell, PROGRAM)]]);
    let all: [Vec<(Part, u64)>; 1] = [vec![]];
    assert_eq!(parts(&[], &[(Operation::Flush, 0)]), all);
}

#[test]
fn waits_for_the_die_and_for_the_channel_are_distinguished() {
    let alone = vec![(Part::Bus, PAGE), (Part::Cell, READ)];
    // Both units on one die.
    let behind = vec![(Part::Die, READ + PAGE), (Part::Bus, PAGE), (Part::Cell, READ)];
    assert_eq!(parts(&[], &[(Read, 0), (Read, 4)]), [alone.clone(), behind]);
    // Two dies of one channel: the cells work at the same time, and the data transfers follow each other.
    let behind = vec![(Part::Channel, PAGE), (Part::Bus, PAGE), (Part::Cell, READ)];
    assert_eq!(parts(&[], &[(Read, 0), (Read, 2)]), [alone.clone(), behind]);
    // Two channels.
    assert_eq!(parts(&[], &[(Read, 0), (Read, 1)]), [alone.clone(), alone]);
    // Writes wait for the channel before they start.
    let alone = vec![(Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    let behind = vec![(Part::Channel, PAGE), (Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    assert_eq!(parts(&[], &[(Write, 0), (Write, 2)]), [alone, behind]);
}

#[test]
fn a_write_waits_for_an_older_one_of_its_unit() {
    let alone = vec![(Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    let behind = vec![(Part::Order, PAGE + PROGRAM), (Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    assert_eq!(parts(&[], &[(Write, 0), (Write, 0)]), [alone, behind]);
}

/// Returns the non-zero parts of requests of one unit each, which are submitted together to a device with log blocks.
fn parts_of(device: &mut Device, requests: &[(Operation, u64)]) -> Vec<Vec<(Part, u64)>> {
    let now = device.now();
    for (tag, &(operation, unit)) in requests.iter().enumerate() {
        let request = Request { tag: tag as u64, ..units(device, operation, unit, 1) };
        submit(device, now, request);
    }
    let parts = |breakdown: &Breakdown| {
        let all = Part::ALL.map(|part| (part, breakdown.of(part).ps()));
        all.into_iter().filter(|(_, ps)| *ps > 0).collect()
    };
    breakdowns(device).values().map(|(_, breakdown)| parts(breakdown)).collect()
}

const FAST: &str = "mapping.scheme={ fast = { logs = { sequential = 1, random = 2 } } }";

/// Three pages that go to one log block, which executes one program at a time: `--` is the transfer, `==` the cells.
///
/// ```text
/// first   --======
/// second  waits   --======           die: transfer and cells of the first
/// third   waits           --======   die: those of both
/// ```
#[test]
fn writes_wait_for_earlier_ones_to_the_same_log_block() {
    const WRITE: u64 = PAGE + PROGRAM;
    let own = [(Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    let behind = |writes: u64| [vec![(Part::Die, writes * WRITE)], own.to_vec()].concat();
    // In a sequential log block, and in a random one, which takes pages of several logical blocks.
    for units in [[0, 1, 2], [65, 130, 195]] {
        let mut device = device(&[FAST]);
        assert_eq!(parts_of(&mut device, &units.map(|unit| (Write, unit))), [own.to_vec(), behind(1), behind(2)]);
    }
}

/// A write of another logical block needs the only sequential log block, which holds one page and is to get a second:
///
/// ```text
/// second page  --======
/// other block  waits   | copies of 62 pages | --======
///              die       gc
/// ```
#[test]
fn a_write_waits_for_earlier_ones_and_then_for_the_merge() {
    const WRITE: u64 = PAGE + PROGRAM;
    const COPY: u64 = READ + PAGE + PAGE + PROGRAM;
    let mut device = device(&[FAST]);
    let own = vec![(Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    assert_eq!(parts_of(&mut device, &[(Write, 0)])[0], own);
    let after_merge = [vec![(Part::Die, WRITE), (Part::Gc, 62 * COPY)], own.clone()].concat();
    assert_eq!(parts_of(&mut device, &[(Write, 1), (Write, 64)]), [own.clone(), after_merge]);
    // The merge starts at once. A write to a random log block does not wait for it.
    let first = [vec![(Part::Gc, 63 * COPY)], own.clone()].concat();
    assert_eq!(parts_of(&mut device, &[(Write, 128), (Write, 200)]), [first, own]);
}

#[test]
fn a_partial_write_reads_first() {
    let mut device = device(&[]);
    let half = Request { sectors: 4, ..units(&device, Write, 0, 1) };
    submit(&mut device, Time::ZERO, half);
    let (_, breakdown) = breakdowns(&mut device)[&0];
    assert_eq!(breakdown.of(Part::Rmw), Time(READ + PAGE));
    assert_eq!((breakdown.of(Part::Bus), breakdown.of(Part::Cell)), (Time(PAGE), Time(PROGRAM)));
    assert_eq!(breakdown.total(), Time(READ + PAGE + PAGE + PROGRAM));
    // A read of sectors that the write does not contain waits until the write slot is complete.
    let mut device = self::device(&[]);
    submit(&mut device, Time::ZERO, half);
    let other_half = Request { lba: 4, sectors: 4, tag: 1, ..units(&device, Read, 0, 1) };
    submit(&mut device, Time(1), other_half);
    let (_, breakdown) = breakdowns(&mut device)[&1];
    assert_eq!(breakdown.of(Part::Order), Time(READ + PAGE - 1));
    assert_eq!(breakdown.total(), Time(READ + PAGE - 1));
}

#[test]
fn waits_of_the_host_side_are_attributed() {
    // Waiting for a slot of the host queue.
    let alone = vec![(Part::Bus, PAGE), (Part::Cell, READ)];
    let behind = vec![(Part::HostQueue, READ + PAGE), (Part::Bus, PAGE), (Part::Cell, READ)];
    assert_eq!(parts(&["host.queue_depth=1"], &[(Read, 0), (Read, 1)]), [alone, behind]);
    // Waiting for a write slot.
    let alone = vec![(Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    let behind = vec![(Part::Buffer, PAGE + PROGRAM), (Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    assert_eq!(parts(&["controller.write_slots=1"], &[(Write, 0), (Write, 1)]), [alone, behind]);
    // The link, in both directions; 4096 B at 100 MB/s take 40.96 us. The data of the second read wait for those of
    // the first.
    let link = ["host.link_latency=5us", "host.link_bandwidth=100MB/s"];
    let both = 2 * 5_000_000 + 40_960_000;
    let first = vec![(Part::Link, both), (Part::Bus, PAGE), (Part::Cell, READ)];
    let second = vec![(Part::Link, both + 40_960_000), (Part::Bus, PAGE), (Part::Cell, READ)];
    assert_eq!(parts(&link, &[(Read, 0), (Read, 1)]), [first, second]);
    let write = vec![(Part::Link, both), (Part::Bus, PAGE), (Part::Cell, PROGRAM)];
    assert_eq!(parts(&link, &[(Write, 0)]), [write]);
}

#[test]
fn a_pooled_write_attributes_its_wait_to_what_the_dies_did() {
    // Four dies on two channels; the fifth write finds all of them busy. Each channel transfers one page after the
    // other, so the first die is free after one transfer and its program.
    let writes: Vec<_> = (0..5).map(|unit| (Write, unit)).collect();
    let parts = parts(&["allocation=dynamic"], &writes);
    let last: BTreeMap<Part, u64> = parts[4].iter().copied().collect();
    let waited = PAGE + PROGRAM;
    // The wait is split over four dies. Two of them waited for their channel during one transfer each.
    assert_eq!(last[&Part::Channel], (2 * PAGE) / 4);
    assert_eq!(last[&Part::Die] + last.get(&Part::Gc).unwrap_or(&0), waited - PAGE / 2);
    assert_eq!((last[&Part::Bus], last[&Part::Cell]), (PAGE, PROGRAM));
}

#[test]
fn channels_are_counted() {
    let mut device = device(&[]);
    for (tag, count) in [(0, 1), (1, 2), (2, 4)] {
        let request = Request { tag, ..units(&device, Read, 8, count) };
        submit(&mut device, Time(tag * 1_000_000_000), request);
    }
    let channels: Vec<u32> = breakdowns(&mut device).values().map(|(_, breakdown)| breakdown.channels).collect();
    assert_eq!(channels, [1, 2, 2]);
}

#[test]
fn attribution_changes_nothing_else() {
    let run = |attribution| {
        let mut device =
            common::build(device_config(&["gc.victim=greedy"]), Options { attribution, ..Options::default() });
        fill(&mut device, 1);
        load(&mut device, 3000);
        drain(&mut device)
    };
    assert_eq!(run(true), run(false));
}

/// Submits random reads and writes of one unit each, at random intervals.
fn load(device: &mut Device, requests: u64) {
    let mut rng = Rng::new(7, "attribution/load");
    let logical = u64::from(device.ftl().map.len());
    for tag in 0..requests {
        let operation = if rng.below(2) == 0 { Read } else { Write };
        let request = Request { tag, ..units(device, operation, rng.below(logical), 1) };
        let at = device.now() + Time(rng.below(2 * PAGE));
        submit(device, at, request);
    }
}

/// Phases of the flash that the probe recorded: times at which each die and each channel was occupied.
struct Seen {
    /// Indexed by plane: start, end, and true if the operation belongs to garbage collection.
    dies: BTreeMap<u32, Vec<(Time, Time, bool)>>,
    channels: BTreeMap<u32, Vec<(Time, Time, bool)>>,
}

impl Seen {
    fn new(device: &Device, slices: &[Slice]) -> Seen {
        let mut seen = Seen { dies: BTreeMap::new(), channels: BTreeMap::new() };
        // A die is occupied from the first phase of an operation to the last, including waits between them.
        let mut running: BTreeMap<u32, (Kind, u32)> = BTreeMap::new();
        for slice in slices {
            let gc = slice.class.is_collecting();
            let plane = match slice.lane {
                Lane::Channel(channel) => {
                    seen.channels.entry(channel).or_default().push((slice.start, slice.end, gc));
                    device.ftl().blocks.plane_of(device.ftl().blocks.block_of(Ppn(slice.ppn))).0
                }
                Lane::Plane(plane) => plane,
            };
            let held = seen.dies.entry(plane).or_default();
            let same = running.get(&plane) == Some(&(slice.kind, slice.ppn)) && !starts(slice);
            match held.last_mut() {
                Some(last) if same => last.1 = slice.end,
                _ => held.push((slice.start, slice.end, gc)),
            }
            running.insert(plane, (slice.kind, slice.ppn));
        }
        seen
    }

    /// Returns the intervals between `from` and `to` that `spans` do not cover. `spans` are sorted.
    fn free(spans: &[(Time, Time, bool)], from: Time, to: Time) -> Vec<(Time, Time)> {
        let mut free = Vec::new();
        let mut at = from;
        for (start, end, _) in spans.iter().filter(|span| span.1 > from && span.0 < to) {
            if *start > at {
                free.push((at, *start));
            }
            at = *end;
        }
        if at < to {
            free.push((at, to));
        }
        free
    }

    /// Returns the time between `from` and `to` that `spans` of garbage collection, or the others, cover.
    fn overlap(spans: &[(Time, Time, bool)], from: Time, to: Time, gc: bool) -> u64 {
        let of = spans.iter().filter(|span| span.2 == gc);
        of.map(|(start, end, _)| (*end).min(to).since((*start).max(from)).ps()).sum()
    }
}

/// Returns `true` if the phase is the first of its operation: the cells of a read or erase, the transfer of a program.
fn starts(slice: &Slice) -> bool {
    match slice.kind {
        Kind::Program => slice.phase != Phase::Cell,
        Kind::Read | Kind::Erase | Kind::CopyBack => slice.phase == Phase::Cell,
    }
}

#[test]
fn waits_equal_those_that_the_probe_recorded() {
    let mut device = device(&["geometry.blocks=16", "capacity.spare=0.4"]);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
    load(&mut device, 6000);
    let requests = breakdowns(&mut device);
    let probe = device.array_mut().take_probe().unwrap();
    let seen = Seen::new(&device, probe.slices());
    let mut of_request: BTreeMap<u64, Vec<&Slice>> = BTreeMap::new();
    probe.slices().iter().for_each(|slice| of_request.entry(slice.tag).or_default().push(slice));
    let mut behind_gc = 0;
    let mut checked = 0;
    for (tag, (completion, breakdown)) in &requests {
        let own = of_request.get(tag).map_or(&[][..], Vec::as_slice);
        // Reads that the controller serves have no phases. Writes may have waited for a free page.
        let [
            Slice { lane: Lane::Plane(plane), start, end, .. },
            Slice { lane: Lane::Channel(channel), start: out, .. },
        ] = own
        else {
            continue;
        };
        if completion.request.operation != Read {
            continue;
        }
        let (die, bus) = (&seen.dies[plane], &seen.channels[channel]);
        let arrival = completion.request.arrival;
        let held = |gc| Seen::overlap(die, arrival, *start, gc);
        // A read without command cycles starts when its die is free, unless an earlier write waits for the channel.
        let free = Seen::free(die, arrival, *start);
        let carried = |gc| {
            let waits = free.iter().copied().chain([(*end, *out)]);
            waits.map(|(from, to)| Seen::overlap(bus, from, to, gc)).sum::<u64>()
        };
        assert_eq!(breakdown.of(Part::Die).ps(), held(false), "request {tag}");
        assert_eq!(breakdown.of(Part::Channel).ps(), carried(false), "request {tag}");
        assert_eq!(breakdown.of(Part::Gc).ps(), held(true) + carried(true), "request {tag}");
        behind_gc += u64::from(held(true) > 0) + u64::from(carried(true) > 0);
        checked += 1;
    }
    assert!(checked > 2000 && behind_gc > 300, "{checked} reads, {behind_gc} waits for garbage collection");
}
