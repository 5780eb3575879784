//! Watchers of a run: time windows, waits and phases. They change nothing, and the recorded values add up.

use crate::common::{self, Load, device, fill};
use floatgate_core::flash::Role;
use floatgate_core::internals::{MAX_WINDOWS, MIN_WINDOWS};
use floatgate_core::results::{Breakdown, Sample, Series, Width, Window};
use floatgate_core::sim::id::PlaneId;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::{Pace, Source};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Outcome, Progress, Ssd, Watcher, run};
use floatgate_core::timeline::{Lane, Phase, Probe, Slice};

/// Watcher that records everything.
struct Collector {
    series: Series,
    slices: Vec<Slice>,
    completions: Vec<Completion>,
}

impl Collector {
    fn new(width: Width) -> Collector {
        Collector { series: Series::new(width), slices: Vec::new(), completions: Vec::new() }
    }
}

impl Watcher for Collector {
    fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> Result<(), String> {
        self.series.completed(completion, breakdown);
        self.completions.push(*completion);
        Ok(())
    }
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
    fn next_sample(&self) -> Time {
        self.series.next_sample()
    }
    fn record(&mut self, sample: &Sample) -> Result<(), String> {
        self.series.record(sample);
        Ok(())
    }
    fn record_last(&mut self, sample: &Sample) -> Result<(), String> {
        self.series.record_last(sample);
        Ok(())
    }
    fn wants_slices(&self) -> bool {
        true
    }
    fn slices(&mut self, slices: &[Slice]) -> Result<(), String> {
        self.slices.extend_from_slice(slices);
        Ok(())
    }
}

/// Devices with different waits: shared dies, a link, few write slots, pools.
const DEVICES: [&[&str]; 4] = [
    &[],
    &["geometry.planes=2", "nand.concurrency=die", "host.queue_depth=4"],
    &["host.link_bandwidth=300MB/s", "host.link_latency=3us", "controller.write_slots=4", "host.queue_depth=8"],
    &["allocation={ dynamic = {} }", "gc.soft_threshold=4"],
];

/// Returns a full device, on which garbage collection runs.
fn full(overrides: &[&str]) -> Device {
    let mut device = device(overrides);
    let units = device.ftl().map.len();
    fill(&mut device, units);
    device
}

/// Returns reads and writes of one or two units at random addresses, at random times or in a closed loop.
fn load(device: &Device, count: u64, pace: Pace, from: Time) -> Box<dyn Source> {
    let mut rng = Rng::new(7, "watching");
    let (units, sectors) = (device.config().logical_units(), device.config().sectors_per_unit());
    let mut at = Time::ZERO;
    let next = move || {
        let operation = if rng.below(10) < 4 { Operation::Read } else { Operation::Write };
        at += Time(rng.below(400_000_000));
        let count = 1 + rng.below(2) as u32;
        Request::new(at, operation, rng.below(units - 2) * u64::from(sectors), count * sectors)
    };
    let mut load = Load::open(count, next).measured_from(from);
    load.pace = pace;
    Box::new(load)
}

const PACES: [Pace; 3] =
    [Pace::Timed { depth: None }, Pace::Timed { depth: Some(3) }, Pace::Depth { depth: 8, think: Time::ZERO }];

fn watch(device: &mut Device, pace: Pace, from: Time, watcher: &mut dyn Watcher) -> Outcome {
    let mut sources = vec![load(device, 3_000, pace, from)];
    run(device, &mut sources, watcher).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_watcher_changes_nothing() {
    for overrides in DEVICES {
        for pace in PACES {
            let mut plain = full(overrides);
            let expected = watch(&mut plain, pace, Time::ZERO, &mut floatgate_core::simulation::NoWatcher);
            for width in [Width::Adaptive, Width::Fixed(Time::from_us(13)), Width::Fixed(Time::from_us(100_000))] {
                let mut watched = full(overrides);
                watched.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER).with_waits()));
                let mut collector = Collector::new(width);
                let outcome = watch(&mut watched, pace, Time::ZERO, &mut collector);
                let reported = |device: &Device, outcome: &Outcome| {
                    let all = outcome.results.all();
                    format!(
                        "{:?} {:?} {:?} {:?} {} {} {:?}",
                        outcome.counters,
                        device.array().channel_time,
                        device.array().die_time,
                        outcome.measured,
                        all.waiting,
                        all.service,
                        device.now(),
                    )
                };
                assert_eq!(
                    reported(&watched, &outcome),
                    reported(&plain, &expected),
                    "{overrides:?} {pace:?} {width:?}"
                );
                assert!(collector.slices.len() > 5_000);
            }
        }
    }
}

fn sum<T: std::iter::Sum<T>>(windows: &[Window], of: impl Fn(&Window) -> T) -> T {
    windows.iter().map(of).sum()
}

#[test]
fn windows_have_the_counts_of_the_buffer() {
    // Four units of 4 KiB, LRU. A row is a window of a millisecond: units at its end and dirty ones; read hits, partial
    // hits and misses; write hits and misses; evictions; units written back.
    use Operation::{Flush, Read, Write};
    let script = [
        (100, Write, 0, 16),
        (1100, Read, 0, 8),
        (1200, Write, 8, 8),
        (1300, Read, 72, 8),
        (2100, Flush, 0, 0),
        // Unit 0 is clean and the oldest. Later unit 1 is.
        (3100, Write, 160, 16),
        (4100, Write, 240, 4),
        (4200, Read, 240, 8),
    ];
    let expected = [
        ([2, 2], [0, 0, 0], [0, 2], 0, 0),
        ([3, 2], [1, 0, 1], [1, 0], 0, 0),
        ([3, 0], [0, 0, 0], [0, 0], 0, 2),
        ([4, 2], [0, 0, 0], [0, 2], 1, 0),
        ([4, 3], [0, 1, 0], [0, 1], 1, 0),
    ];
    for width in [Width::Fixed(Time::from_us(1000)), Width::Adaptive] {
        let mut device = device(&["buffer.capacity=16KiB"]);
        fill(&mut device, 64);
        let mut requests =
            script.into_iter().map(|(at, what, lba, sectors)| Request::new(Time::from_us(at), what, lba, sectors));
        let next = move || requests.next().expect("a request");
        let mut sources: Vec<Box<dyn Source>> = vec![Box::new(Load::open(script.len() as u64, next))];
        let mut collector = Collector::new(width);
        let outcome = run(&mut device, &mut sources, &mut collector).unwrap();
        let windows = collector.series.take_closed();
        let reported = windows.iter().map(|window| {
            let of = &window.buffer;
            let (reads, writes) = ([of.reads_hit, of.reads_partial, of.reads_miss], [of.writes_hit, of.writes_new]);
            (window.buffer_units, reads, writes, of.evictions.iter().sum::<u64>(), of.written_back)
        });
        if width != Width::Adaptive {
            assert_eq!(reported.collect::<Vec<_>>(), expected);
        }
        let counted = windows.iter().fold(Default::default(), |sum, window: &Window| window.buffer.plus(&sum));
        assert_eq!(counted, outcome.controller.buffer);
    }
}

#[test]
fn windows_add_up() {
    for overrides in DEVICES {
        for width in [Width::Adaptive, Width::Fixed(Time::from_us(777))] {
            let mut device = full(overrides);
            let mut collector = Collector::new(width);
            let outcome = watch(&mut device, PACES[0], Time::ZERO, &mut collector);
            let windows = collector.series.take_closed();
            let expected = if width == Width::Adaptive { MIN_WINDOWS / 2..=MAX_WINDOWS } else { 100..=usize::MAX };
            assert!(expected.contains(&windows.len()), "{}", windows.len());
            assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(windows[1..windows.len() - 1].iter().all(|window| window.width() == windows[0].width()));
            assert_eq!(windows[0].start, Time::ZERO);
            for operation in Operation::ALL {
                let expected = outcome.results.of(operation);
                let of = |value: fn(&floatgate_core::results::Answered) -> u64| {
                    sum(&windows, |window| window.of(operation).map_or(0, value))
                };
                assert_eq!(of(|answered| answered.count), expected.count());
                assert_eq!(of(|answered| answered.bytes), expected.bytes);
                let latency = sum(&windows, |window| window.of(operation).map_or(0, |answered| answered.latency_sum));
                assert_eq!(latency, expected.waiting + expected.service);
            }
            let counted = windows.iter().fold(Default::default(), |sum, w: &Window| w.counters.plus(&sum));
            assert_eq!(counted, outcome.counters);
            for (channel, time) in device.array().channel_time.iter().enumerate() {
                let of = |which: usize| sum(&windows, |window| window.channels[channel][which]);
                assert_eq!([of(0), of(1)], [time.data.ps() as i64, time.command.ps() as i64]);
            }
            for (die, time) in device.array().die_time.iter().enumerate() {
                let of = |which: usize| sum(&windows, |window| window.dies[die][which]);
                assert_eq!([of(0), of(1)], [time.cell.ps() as i64, time.register_held.ps() as i64]);
            }
            let last = windows.last().unwrap();
            let free_blocks = |plane| u64::from(device.ftl().blocks.free_blocks(PlaneId(plane), Role::Data));
            assert_eq!(last.free_blocks_sum, (0..device.config().total_planes()).map(free_blocks).sum::<u64>());
        }
    }
}

fn overlap(window: &Window, slice: &Slice) -> i64 {
    slice.end.min(window.end).since(slice.start.max(window.start)).ps() as i64
}

#[test]
fn each_window_has_the_events_of_its_time() {
    for overrides in [DEVICES[0], DEVICES[1], &["bus.way_switch=200ns", "bus.command_cycles.read=7"]] {
        let mut device = full(overrides);
        device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
        let mut collector = Collector::new(Width::Fixed(Time::from_us(91)));
        watch(&mut device, PACES[0], Time::ZERO, &mut collector);
        let planes = device.config().geometry.planes;
        let windows = collector.series.take_closed();
        // Expected values: a phase counts in a window as far as it overlaps it, a completion in the window of its time.
        for window in windows.iter().step_by(17) {
            let seen = |lane: &dyn Fn(Lane) -> bool, data: bool| -> i64 {
                let of_kind = |s: &&Slice| (s.phase == Phase::Data || s.phase == Phase::Cell) == data;
                collector.slices.iter().filter(|s| lane(s.lane)).filter(of_kind).map(|s| overlap(window, s)).sum()
            };
            for (channel, time) in window.channels.iter().enumerate() {
                let here = |lane| lane == Lane::Channel(channel as u32);
                assert_eq!(*time, [seen(&here, true), seen(&here, false)], "channel {channel} from {:?}", window.start);
            }
            for (die, time) in window.dies.iter().enumerate() {
                let here = |lane| matches!(lane, Lane::Plane(plane) if plane / planes == die as u32);
                assert_eq!(time[0], seen(&here, true), "die {die} from {:?}", window.start);
                assert!(time[0] + time[1] <= window.width().ps() as i64 * i64::from(planes));
                assert!(time[1] >= 0);
            }
            let answered = collector.completions.iter().filter(|c| c.finish > window.start && c.finish <= window.end);
            let expected = answered.count() as u64;
            assert_eq!(Operation::ALL.iter().filter_map(|o| window.of(*o)).map(|a| a.count).sum::<u64>(), expected);
        }
    }
}

#[test]
fn windows_start_with_the_measured_part() {
    let from = Time::from_us(100_500);
    let mut device = full(&[]);
    let mut collector = Collector::new(Width::Fixed(Time::from_us(1_000)));
    let outcome = watch(&mut device, PACES[0], from, &mut collector);
    let windows = collector.series.take_closed();
    assert_eq!(windows[0].start, from);
    let count = sum(&windows, |w| Operation::ALL.iter().filter_map(|o| w.of(*o)).map(|a| a.count).sum::<u64>());
    assert_eq!(count, outcome.results.all().count());
    assert_eq!(windows.iter().fold(Default::default(), |sum, w: &Window| w.counters.plus(&sum)), outcome.counters);
    // Operations that were in flight at the start end in the first windows. No time there is negative.
    assert!(windows.iter().flat_map(|w| w.channels.iter().chain(&w.dies)).all(|time| time[0] >= 0 && time[1] >= 0));
}

/// Reads take 25 us, and pages 4096 x 25 ns = 102.4 us on the bus. Units 0 and 4 are on the first chip, unit 2 is on
/// the other chip of the channel.
#[test]
fn waits_are_those_computed_by_hand() {
    let mut device = full(&["allocation={ static = { order = \"channel-chip-die-plane\" } }"]);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER).with_waits()));
    let sectors = u64::from(device.config().sectors_per_unit());
    for (tag, unit) in [(0, 0), (1, 4), (2, 2)] {
        let request = Request::new(Time::ZERO, Operation::Read, unit * sectors, sectors as u32);
        device.submit(Time::ZERO, Request { tag, ..request });
    }
    common::drain(&mut device);
    let probe = device.array().probe().unwrap();
    let mut waits: Vec<_> = probe.slices().iter().filter(|slice| slice.phase == Phase::Wait).collect();
    waits.sort_by_key(|slice| slice.tag);
    let reported: Vec<_> = waits.iter().map(|slice| (slice.start, slice.end, slice.lpn)).collect();
    // The first chip is free when its data were transferred, at 127.4 us. The other one starts at once.
    let free = Time::from_ns(127_400);
    assert_eq!(reported, [(Time::ZERO, Time::ZERO, 0), (Time::ZERO, free, 4), (Time::ZERO, Time::ZERO, 2)]);
}

#[test]
fn every_unit_of_a_program_command_has_its_wait() {
    let mut device = device(&["geometry.mapping_unit=2KiB"]);
    device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER).with_waits()));
    // Two units fill a page if they are on the same plane.
    let request = |tag, lba| Request { tag, ..Request::new(Time::ZERO, Operation::Write, lba, 4) };
    for tag in 0..64 {
        device.submit(Time::ZERO, request(tag, tag * 4));
    }
    common::drain(&mut device);
    let slices = device.array().probe().unwrap().slices().to_vec();
    for tag in 0..64 {
        let waits: Vec<_> = slices.iter().filter(|s| s.tag == tag && s.phase == Phase::Wait).collect();
        assert_eq!(waits.len(), 1, "request {tag}");
        assert_eq!(waits[0].lpn, tag as u32);
        let starts = |s: &&Slice| s.phase != Phase::Wait && s.plane == waits[0].plane && s.start == waits[0].end;
        assert!(slices.iter().any(|slice| starts(&slice)), "request {tag} is granted when an operation starts");
    }
}
